/* barrier.h: simulation of a barrier that the switches' own logic counts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_BARRIER_H
#define FP_SIM_BARRIER_H

#include "job.h"

/* Simulates the barrier in the switches with one rank on each node. */
void barrier_simulate_switches(const struct machine *m, uint32_t nodes, struct job_report *out);

#endif
