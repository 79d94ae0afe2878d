/* channel.h: the socket between the roots of two groups that connect. Both prove that they know the port's
 * key; everything sent afterwards is authenticated with a key derived from it for this connection alone.
 * Waiting makes progress, so that the rest of the library continues.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DYN_CHANNEL_H
#define FP_DYN_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

struct proc;

#define CHANNEL_KEY   16
#define CHANNEL_NONCE 16

struct channel {
    struct proc *proc;
    int fd;
    bool own_fd;  /* ours to close */
    bool accepts; /* which end of it this is */
    uint8_t session[SHA256_SIZE];
    uint64_t sent, received; /* messages */
};

/* Looks while one waits for the other end; an error class ends the waiting. */
struct channel_watch {
    int (*look)(void *arg);
    void *arg;
};

/* Waits until the file is ready for these events of poll(2). deadline in ns of clock_ns(), UINT64_MAX: none.
 * 0, MPI_ERR_PORT when it is late, or what the watch said. */
int channel_wait(struct proc *p, int fd, short events, uint64_t deadline, const struct channel_watch *watch);

/* Greets the other end over a connected socket, which must not block. */
int channel_open(struct channel *c, struct proc *p, int fd, bool own_fd, bool accepts,
                 const uint8_t key[CHANNEL_KEY], const struct channel_watch *watch);
void channel_close(struct channel *c);

/* One message each. Received ones are allocated and may have any length up to CHANNEL_MAX. */
#define CHANNEL_MAX ((uint32_t)1 << 30)
int channel_send(struct channel *c, const void *data, size_t len);
int channel_receive(struct channel *c, void **data, size_t *len);

#endif
