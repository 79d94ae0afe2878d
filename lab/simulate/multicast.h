/* multicast.h: parameters of multicast measured on this machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_SIMULATE_MULTICAST_H
#define FP_LAB_SIMULATE_MULTICAST_H

#include <stdbool.h>

#include "lab/sim/machine.h"

/* Parameters of two virtual nodes (sim_fit_here), each with a core of its own in the simulation, and ack_ns:
 * processor time of the library's sender for an acknowledgement. On failure prints an error and returns
 * false. */
bool sim_multicast_measure(struct machine *m);

#endif
