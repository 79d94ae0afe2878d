/* shared_memory.h: memory files (memfd) that processes of this user share. A process that opens one
 * through /proc or receives its descriptor does not trust the other process: before it maps the file it
 * checks owner, type, name, size and seals. The seals prevent later changes of the size (a shorter file
 * would cause SIGBUS). Depends on libc alone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SHARED_MEMORY_H
#define FP_BASE_SHARED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define SHARED_MEMORY_NODE \
    "fishplate-node" /* memory of a node's ranks; created by mpiexec or by its first rank */

/* Creates a sealed memory file of this size; -1 with errno. */
int shared_memory_create(const char *name, uint64_t bytes);

/* Creates an empty memory file for shared_memory_seal. */
int shared_memory_create_empty(const char *name);

/* Sets the file's size permanently, unless another process has set its size before; false with errno. */
bool shared_memory_seal(int fd, uint64_t bytes);

/* True for a sealed memory file of this user with this name and at least this size. */
bool shared_memory_is_valid(int fd, const char *name, uint64_t least);

/* Opens descriptor `fd` of process `pid` for reading and writing; -1 with errno. EPERM: the descriptor is no
 * sealed memory file of this user with this name and size. No other file is opened: opening a device or a
 * file of the program could have side effects. */
int shared_memory_open(int pid, int fd, const char *name, uint64_t least);

/* True if the process or its descriptor does not exist any more. Needs no descriptor. */
bool shared_memory_is_gone(int pid, int fd);

#endif
