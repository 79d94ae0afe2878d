/*
 * Wire (b): between machines. RC and UC requests go over one TCP connection per pair of processes, datagrams
 * over UDP. A process's port number is its node's base plus its member slot, so that a QP number and an LID
 * find it. All state of this wire is under one lock; it is taken before any QP's lock.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SOFTIB_WIRE_H
#define SOFTIB_WIRE_H

#include "responder.h"
#include <sys/uio.h>

static inline bool wire_is_remote(uint32_t node)
{
    return proc.fab.wire == WIRE_TCP && node != proc.fab.node;
}

bool wire_listen(uint32_t slot); /* binds both sockets; false: the numbers are taken */
bool wire_start(void);
void wire_forget(void);
void wire_lock(void);
bool wire_try_lock(void);
void wire_unlock(void);
extern atomic_bool wire_active;
void wire_attend(bool on);            /* whether the engine watches the sockets */
uint64_t wire_drains(void);           /* how often a call found something to receive */
bool wire_pending(void);              /* something waits in a socket */
void remote_retract(struct sh_mr *s); /* the region is no longer registered; lock held */
void remote_quiet(struct qp *q);      /* the QP failed: nothing of it may touch its memory any more */
void wire_flush(void);                /* sends acknowledgements that were waiting; lock held */
void wire_tick(uint64_t now);         /* timers of connections; lock held */
/* Drains the sockets without waiting; lock held. */
void wire_poll(void);
void wire_peek(void); /* the same for a poller that comes again soon: perhaps not all of them */

/* Connected QPs. */
bool remote_attach(struct qp *q, uint32_t node); /* lock order: wire, then QP */
void remote_detach(struct qp *q);
void remote_progress(struct qp *q);               /* both locks held */
void remote_reserve(struct qp *q, struct wqe *w); /* the latency of its link */

/* barrier.c: packets of the switch's barrier unit. */
struct frame;
struct sockaddr_in;
void barrier_frame(const struct frame *f, const struct sockaddr_in *from);
void barrier_tick(uint64_t now);

/* Datagrams. */
void wire_udp_switch(const struct frame *f, const struct sockaddr_in *to); /* NULL: to the switch */
void wire_udp_switch_at(const struct sockaddr_in *from);                   /* it answered from there */
void wire_udp_send(uint32_t node, uint32_t qpn, const struct request *r, const struct iovec *iov, int n);
void wire_udp_multicast(struct qp *q, const struct path *to, const struct request *r, const struct iovec *iov,
                        int n);
void wire_udp_join(const uint8_t gid[16], bool join);

#endif
