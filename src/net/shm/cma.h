/* cma.h: reads and writes another process's private memory with one copy (process_vm_readv and
 * process_vm_writev).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_SHM_CMA_H
#define FP_NET_SHM_CMA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/transport.h"

/* cma_read, cma_write: any length. Return 0 or an MPI error class with a message. */
int cma_read(pid_t pid, void *local, uint64_t remote, size_t len);
/* Moves several pieces by few system calls, in any order. */
int cma_move_pieces(pid_t pid, bool write, const struct net_piece *pieces, size_t count);
int cma_write(pid_t pid, const void *local, uint64_t remote, size_t len);

/* True if a read of 8 bytes returns the value that the peer has published. Containers may deny access, and
 * process ids may denote different processes. */
int cma_test_read(pid_t pid, uint64_t remote, uint64_t value);

/* Permits peers to read this process's memory if the Yama module would deny it: `launcher` (a process id) and
 * its descendants; if it is NULL or no process here (container), all of the user. */
void cma_permit_access(const char *launcher);

#endif
