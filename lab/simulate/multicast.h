/* multicast.h: the parameters of multicast on this machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_SIMULATE_MULTICAST_H
#define FP_LAB_SIMULATE_MULTICAST_H

#include <stdbool.h>

#include "lab/sim/machine.h"

/* Two virtual nodes (sim_fit_here), each node with a core of its own in the simulation; and ack_ns: what the library's sender takes for
 * an acknowledgement. False after a sentence. */
bool sim_multicast_measure(struct machine *m);

#endif
