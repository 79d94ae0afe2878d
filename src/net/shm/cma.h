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

/* Both return 0 or an MPI error class with a sentence. Any length. */
int cma_read(pid_t pid, void *local, uint64_t remote, size_t len);
/* Moves several pieces by one system call, in any order. */
int cma_move_pieces(pid_t pid, bool write, const struct net_piece *pieces, size_t count);
int cma_write(pid_t pid, const void *local, uint64_t remote, size_t len);

/* True when a real read of 8 bytes gives the value that the peer has published: containers may deny it, and
 * process numbers may mean different processes. */
int cma_test_read(pid_t pid, uint64_t remote, uint64_t value);

/* Lets peers read us where the Yama module would not: the launcher's process and its descendants, where `launcher` is its
 * number, else (NULL, or no such process here, as in a container) every process of the user. */
void cma_permit_access(const char *launcher);

#endif
