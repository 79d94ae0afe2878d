/* channel.h: the socket between the roots of two groups that connect, after the handshake: every message is authenticated with
 * the key of this connection. Waiting makes progress, so that the rest of the library continues.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DYN_CHANNEL_H
#define FP_DYN_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dyn/handshake.h"

struct pollfd;
struct proc;
struct net_waiter;

struct channel {
    struct proc *proc;
    int fd;
    bool own_fd;  /* ours to close */
    bool accepts; /* which end of it this is */
    uint8_t session[SHA256_SIZE];
    uint64_t sent, received; /* messages */
};

/* poll(2) for at most a millisecond, with progress: less if something happened. The caller ends the waiter (net_wait_end). Another thread may have the big lock meanwhile. */
int channel_poll(struct proc *p, struct pollfd *fds, unsigned n, struct net_waiter *w);

/* Waits until the file is ready for these events of poll(2). deadline in ns of clock_ns(), UINT64_MAX: none.
 * 0, or MPI_ERR_PORT if the time is over. */
int channel_wait(struct proc *p, int fd, short events, uint64_t deadline);

/* A message is written in pieces: TCP would keep the second until the other side acknowledges the first, which it delays for
 * 40 ms. Not for a user's socket (MPI_Comm_join). */
void channel_send_at_once(int fd);

/* A channel over a connected socket, which must not block, whose handshake is done. */
void channel_adopt(struct channel *c, struct proc *p, int fd, bool own_fd, const struct handshake *h);

/* As channel_adopt, with the handshake first. */
int channel_open(struct channel *c, struct proc *p, int fd, bool own_fd, bool accepts,
                 const uint8_t key[HANDSHAKE_KEY]);
void channel_close(struct channel *c);

/* The other end is closed or broken, and sent nothing that was not received. Does not wait. */
bool channel_is_lost(const struct channel *c);

/* Send or receive one message. A received one is allocated and has at most CHANNEL_MAX bytes. */
#define CHANNEL_MAX ((uint32_t)1 << 30)
int channel_send(struct channel *c, const void *data, size_t len);
int channel_receive(struct channel *c, void **data, size_t *len);

#endif
