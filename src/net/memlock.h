/* memlock.h: how much memory this process may pin. Checked before the first registration, so that a small limit
 * is a sentence and not an error of the device.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MEMLOCK_H
#define FP_NET_MEMLOCK_H

#include <stdint.h>

/* The limit of locked memory; UINT64_MAX: none. */
uint64_t memlock_limit(void);

/* Raises the limit as far as an ordinary user may (to the hard limit) when it is below `bytes`. 0, or
 * MPI_ERR_NO_MEM with a sentence that states the limit and how to raise it; `who` is what wants the
 * memory ("mlx5_0"). */
int memlock_check(uint64_t bytes, const char *who);

/* Sets only the error text. */
int memlock_refuse(uint64_t bytes, uint64_t limit, const char *who);

#endif
