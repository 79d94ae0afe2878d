/* cpu.h: the hint for spin loops, and how many processors this process may use. The instruction itself is in
 * arch/, one file per architecture, chosen by the build.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_CPU_H
#define FP_BASE_CPU_H

#include "cpu_arch.h" /* cpu_relax(): a hint that this is a spin loop; cpu_prefetch_write() */

/* The number of processors in this process's affinity mask, at least 1. */
int cpu_allowed(void);

#endif
