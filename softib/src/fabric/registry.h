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

/* Neither longer nor shorter than it was made: a member that cuts it would end the others with SIGBUS. */
#define SHARED_SEALS (F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

int shared_create(const char *name, uint64_t bytes);
/* Opens another process's memory of that size. -1 with EPERM: it is not of this user, not that size or not
 * sealed. */
int shared_open(int pid, int fd, uint64_t bytes);
/* The same for a part of a file that the process has registered as memory, which may be of any size and need not be sealed: a program
 * may register what it likes. It must be a regular file of this user that the process has open for reading and writing, and that
 * has all of the part. */
int shared_open_checked(int pid, int fd, uint64_t from, uint64_t length);

socklen_t abstract_name(struct sockaddr_un *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int bind_name(const struct sockaddr_un *a, socklen_t len); /* a datagram socket of that name */
/* The doorbell socket of a member; its name contains the location of the registry. */
socklen_t bell_name(struct sockaddr_un *a, uint64_t key, const struct reg_member *m);

uint64_t registry_key(const struct fabric *f);
/* Opens the registry of a live member of fabric `key`; -1 when there is none. */
int registry_find(uint64_t key);
/* The same in a list of names like /proc/net/unix. Every user can write lines of it. */
int registry_find_in(FILE *in, uint64_t key);
struct registry *registry_map(int fd);

#endif
