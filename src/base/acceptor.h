/* acceptor.h: accepts connections at listening sockets and limits the resources of callers that have not
 * authenticated. At most `max` callers are served at a time, each for at most `ms` milliseconds. If there
 * is one more caller, or no free file descriptor for it, the oldest caller is disconnected. A caller with
 * the key that was disconnected connects again and authenticates quickly, so that other callers cannot
 * exclude it permanently. Depends on libc alone: the launcher compiles it, too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_ACCEPTOR_H
#define FP_BASE_ACCEPTOR_H

#include <stdint.h>

/* Must be the first member of the user's structure for a caller. */
struct acceptor_caller {
    uint64_t until; /* ms */
    struct acceptor_caller *next;
};

struct acceptor_ops {
    /* Creates a caller for a connected socket (close-on-exec, nonblocking), which the caller owns. */
    struct acceptor_caller *(*admit)(void *ctx, int fd);
    /* Disconnects and frees a caller that was removed from the list. */
    void (*reject)(void *ctx, struct acceptor_caller *c);
};

struct acceptor {
    const struct acceptor_ops *ops;
    void *ctx;
    struct acceptor_caller *first, **last; /* oldest caller; the final `next` pointer */
    uint32_t n, max, ms;
    /* reserve descriptor, closed in order to accept and reject a connection if no other is free; -1: none */
    int spare;
};

void acceptor_open(struct acceptor *a, uint32_t max, uint32_t ms, const struct acceptor_ops *ops, void *ctx);

/* Rejects all callers. */
void acceptor_close(struct acceptor *a);

/* Accepts pending connections of a nonblocking listening socket. Returns 0, or an errno if connections
 * remain that need a resource to be freed first: EMFILE, ENFILE, ENOBUFS, ENOMEM. `now` in ms, here and
 * below. */
int acceptor_accept_pending(struct acceptor *a, int listener, uint64_t now);

/* Rejects callers whose time limit has passed. Returns the time until the next limit in ms; UINT64_MAX
 * without callers. */
uint64_t acceptor_expire(struct acceptor *a, uint64_t now);

/* Removes a caller that has authenticated or disconnected from the list, without freeing it. Ignores callers
 * that are not in the list. */
void acceptor_remove(struct acceptor *a, struct acceptor_caller *c);

#endif
