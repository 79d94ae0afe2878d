/* registry.h: see registry.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_REGISTRY_H
#define SOFTIB_REGISTRY_H

#include "fabric/shm.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The size never changes: a member that truncated the file would end other members with SIGBUS. */
#define SHARED_SEALS (F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

int shared_create(const char *name, uint64_t bytes);
/* Opens a memory file of this size of another process. -1 with EPERM: it belongs to another user, has
 * another size or is not sealed. */
int shared_open(int pid, int fd, uint64_t bytes);
/* Opens a file of which the process has registered a part as memory. The file may have any size and need
 * not be sealed. It must be a regular file of this user that the process has open for reading and writing
 * and that contains the whole part. */
int shared_open_checked(int pid, int fd, uint64_t from, uint64_t length);

socklen_t abstract_name(struct sockaddr_un *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int bind_name(const struct sockaddr_un *a, socklen_t len); /* a datagram socket with this name */
/* The name of the doorbell socket of a member, which contains process and descriptor of the registry. */
socklen_t member_doorbell_name(struct sockaddr_un *a, uint64_t key, const struct reg_member *m);

uint64_t registry_key(const struct fabric *f);
/* Opens the registry of a live member of fabric `key`; -1: there is none. */
int registry_find(uint64_t key);
/* Like registry_find, in a list of sockets like /proc/net/unix, to which every user can add entries. */
int registry_find_in(FILE *in, uint64_t key);
struct registry *registry_map(int fd);

#endif
