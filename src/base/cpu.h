/* cpu.h: the spin-loop hint of the processor (src/base/arch), and the number of processors that this
 * process may use.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_CPU_H
#define FP_BASE_CPU_H

#include "cpu_arch.h" /* cpu_relax(): a hint that this is a spin loop; cpu_prefetch_write() */

/* The number of processors in this process's affinity mask, at least 1. */
int cpu_count_allowed(void);

#endif
