/* responder.h: the target's half of every operation: it checks a request against the QP it names, finds where
 * the data goes, and completes the receive. In shared memory it runs in the sender's process, on the peer's
 * arena; between machines it runs in the target's own process. The code is the same.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_RESPONDER_H
#define SOFTIB_RESPONDER_H

#include "fabric/gid.h"
#include "hca/hca.h"

#define MCAST_LID 0xC000u

enum answer {
    ANS_OK,
    ANS_DROP, /* no such QP, not ready, or not its peer: no answer, the sender's timer runs */
    ANS_RNR,  /* arg: the timer code */
    ANS_INVALID,
    ANS_ACCESS,
    ANS_OP,      /* the receiver's own buffers were bad */
    ANS_LOCAL,   /* the sender's own: never on the wire */
    ANS_LENGTH,  /* longer than the path carries: likewise */
    ANS_REFUSED, /* the system does not let us reach the peer: likewise */
    ANS_WINDOW,  /* a memory window cannot be bound or invalidated as requested: likewise */
};

/* A request as it stands on the wire. */
struct request {
    uint8_t opcode; /* enum ibv_wr_opcode */
    bool solicited, has_grh;
    bool roce_v2;
    bool arming; /* the sender has an alternate path that it has not taken */
    uint8_t type, sl;
    uint32_t length, imm, rkey;
    uint64_t raddr;
    uint32_t src_qpn, qkey;
    uint32_t srqn; /* XRC: which SRQ of the domain takes it */
    uint16_t slid, dlid;
    struct ibv_grh grh;
};

/* The target QP, held for one request. */
struct target {
    struct peer *owner;
    struct sh_qp *qp;
    struct peer
        *memory; /* whose receive requests and memory it uses: the owner, or with XRC the owner of the SRQ */
    struct sh_xrc *xrc;                /* the SRQ that an XRC request names, else NULL */
    _Atomic uint64_t *hold, *xrc_hold; /* of another process's QP and SRQ; NULL: ours, which `users` counts */
};

/* Where a request's data lands. */
struct landing {
    struct rseg seg[MAX_SGE];
    int nseg;
    bool consumed; /* a receive request was taken */
    uint64_t wr_id;
};

enum answer target_find(struct peer *owner, uint32_t qpn, const struct request *r, struct target *t);
void target_release(struct target *t);

/* For SEND, WRITE and their variants. On anything but ANS_OK nothing is held and the QP was failed where it
 * must be. */
enum answer target_prepare(struct target *t, const struct request *r, struct landing *l, uint32_t *arg);
/* For READ (need = remote read) and atomics. */
enum answer target_source(struct target *t, const struct request *r, uint64_t len, uint32_t need,
                          struct rseg *s);
/* Called when the data has been copied: completes the receive, if one was taken. `ok` false: the copy failed. */
enum answer target_finish(struct target *t, const struct request *r, struct landing *l, bool ok);

/* Called when the message will not be completed: releases everything; the receive request is flushed or dropped. */
void target_abandon(struct target *t, const struct request *r, struct landing *l, bool flush);

void target_fail(struct target *t, enum ibv_event_type why);

static inline bool path_multicast(const struct path *p)
{
    return p->dlid >= MCAST_LID || (p->is_global && gid_is_multicast(p->dgid.raw));
}

static inline uint32_t count_packets(uint32_t length, uint32_t mtu_code)
{
    uint32_t shift = 7 + mtu_code;
    return length ? (uint32_t)(((uint64_t)length + (1u << shift) - 1) >> shift) : 1;
}

#endif
