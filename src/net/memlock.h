/* memlock.h: how much memory this process may pin. Checked before the first registration, so that the user
 * reads which limit is too low instead of an error code of the device.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MEMLOCK_H
#define FP_NET_MEMLOCK_H

#include <stdint.h>

/* The limit of locked memory; UINT64_MAX: none. */
uint64_t memlock_limit(void);

/* Raises the limit as far as an ordinary user may (to the hard limit) if it is below `bytes`. Returns 0, or
 * MPI_ERR_NO_MEM with a text that states the limit and how to raise it; `who` names the requester of the
 * memory ("mlx5_0"). */
int memlock_check(uint64_t bytes, const char *who);

/* Sets the error text for a request above the limit, without a check. Returns MPI_ERR_NO_MEM. */
int memlock_set_error(uint64_t bytes, uint64_t limit, const char *who);

#endif
