/* channel.h: the socket between the roots of two groups that connect, after the handshake: every message is
 * authenticated with the key of this connection. Functions that wait also run the progress engine.
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
    bool own_fd;  /* channel_close() closes fd */
    bool accepts; /* this is the accepting end */
    uint8_t session[SHA256_SIZE];
    uint64_t sent, received; /* numbers of messages */
};

/* Runs poll(2) for at most a millisecond and makes progress; returns earlier if something happened. The
 * caller calls net_wait_end() afterwards. The big lock is released while poll(2) waits. */
int channel_poll(struct proc *p, struct pollfd *fds, unsigned n, struct net_waiter *w);

/* Waits until the file descriptor is ready for these events of poll(2). deadline: in ns of clock_ns(),
 * UINT64_MAX for none. Returns 0, or MPI_ERR_PORT after the deadline. */
int channel_wait(struct proc *p, int fd, short events, uint64_t deadline);

/* Disables Nagle's algorithm: messages are written in parts, and TCP would delay the second part until the
 * first is acknowledged (40 ms). Not called for a user's socket (MPI_Comm_join). */
void channel_disable_nagle(int fd);

/* Creates a channel from a connected, nonblocking socket whose handshake is complete. */
void channel_init_from_handshake(struct channel *c, struct proc *p, int fd, bool own_fd,
                                 const struct handshake *h);

/* Like channel_init_from_handshake(), but performs the handshake first. */
int channel_open(struct channel *c, struct proc *p, int fd, bool own_fd, bool accepts,
                 const uint8_t key[HANDSHAKE_KEY]);
void channel_close(struct channel *c);

/* True if the other end is closed or broken and no received data is left. Does not wait. */
bool channel_is_lost(const struct channel *c);

/* Send or receive one message of at most CHANNEL_MAX bytes. channel_receive() allocates *data. */
#define CHANNEL_MAX ((uint32_t)1 << 30)
int channel_send(struct channel *c, const void *data, size_t len);
int channel_receive(struct channel *c, void **data, size_t *len);

#endif
