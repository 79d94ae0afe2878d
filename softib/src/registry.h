/*
 * See registry.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SOFTIB_REGISTRY_H
#define SOFTIB_REGISTRY_H

#include "shm.h"
#include <sys/socket.h>
#include <sys/un.h>

socklen_t abstract_name(struct sockaddr_un *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The doorbell of a member, whose name also says where its registry is. */
socklen_t bell_name(struct sockaddr_un *a, uint64_t key, const struct reg_member *m);

uint64_t registry_key(const struct fabric *f);
/* Opens the registry of a live member of fabric `key`; -1 when there is none. */
int registry_find(uint64_t key);
struct registry *registry_map(int fd);

#endif
