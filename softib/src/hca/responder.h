/* responder.h: the target's part of every operation: it checks a request against its QP, finds the memory
 * for the data, and completes the receive. In shared memory the sender's process executes it on the peer's
 * arena; between machines the target's process does.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_RESPONDER_H
#define SOFTIB_RESPONDER_H

#include "fabric/gid.h"
#include "hca/hca.h"

#define MCAST_LID 0xC000u

enum answer {
    ANS_OK,
    ANS_DROP, /* no such QP, not ready, or not connected to the sender: no answer, the sender's timer runs */
    ANS_RNR,  /* receiver not ready; arg: the timer code */
    ANS_INVALID,
    ANS_ACCESS,
    ANS_OP, /* the receiver's buffers are invalid */
    /* Errors at the sender, which are never sent: */
    ANS_LOCAL,   /* the sender's buffers are invalid */
    ANS_LENGTH,  /* the message is longer than the path permits */
    ANS_REFUSED, /* the system does not permit access to the peer */
    ANS_WINDOW,  /* a memory window cannot be bound or invalidated as requested */
};

/* The header of a request. */
struct request {
    uint8_t opcode; /* enum ibv_wr_opcode */
    bool solicited, has_grh;
    bool roce_v2;
    bool arming; /* the sender has loaded an alternate path and not migrated */
    uint8_t type, sl;
    uint32_t length, imm, rkey;
    uint64_t raddr;
    uint32_t src_qpn, qkey;
    uint32_t srqn; /* XRC: number of the SRQ */
    uint16_t slid, dlid;
    struct ibv_grh grh;
};

/* The target QP of a request, with a reference. */
struct target {
    struct peer *owner;
    struct sh_qp *qp;
    /* Owner of the receive requests and of the memory: `owner`, or the owner of the XRC SRQ. */
    struct peer *memory;
    struct sh_xrc *xrc;                /* SRQ of an XRC request, else NULL */
    _Atomic uint64_t *hold, *xrc_hold; /* on a QP and an SRQ of another process; NULL: own QP and SRQ */
};

/* The memory for a request's data. */
struct landing {
    struct rseg seg[MAX_SGE];
    int nseg;
    bool consumed; /* a receive request was consumed */
    uint64_t wr_id;
};

enum answer target_find(struct peer *owner, uint32_t qpn, const struct request *r, struct target *t);
void target_release(struct target *t);

/* Prepares a SEND, WRITE or one of their variants. On an answer other than ANS_OK the function holds no
 * reference, and the QP has entered the error state if required. */
enum answer target_prepare(struct target *t, const struct request *r, struct landing *l, uint32_t *arg);
/* Finds the memory of a READ or an atomic operation. need: required access rights. */
enum answer target_find_memory(struct target *t, const struct request *r, uint64_t len, uint32_t need,
                               struct rseg *s);
/* Called when the data was copied: completes the receive if one was consumed. ok: the copy succeeded. */
enum answer target_finish(struct target *t, const struct request *r, struct landing *l, bool ok);

/* Called when the message will not be completed: releases all references; the receive request is flushed
 * or dropped. */
void target_abandon(struct target *t, const struct request *r, struct landing *l, bool flush);

void target_fail(struct target *t, enum ibv_event_type why);

static inline bool path_is_multicast(const struct path *p)
{
    return p->dlid >= MCAST_LID || (p->is_global && gid_is_multicast(p->dgid.raw));
}

static inline uint32_t count_packets(uint32_t length, uint32_t mtu_code)
{
    uint32_t shift = 7 + mtu_code;
    return length ? (uint32_t)(((uint64_t)length + (1u << shift) - 1) >> shift) : 1;
}

#endif
