/* sched.h: the schedule of a collective at one rank: a list of steps over three named buffers. It is pure
 * data without I/O or MPI objects, so the executor, the symbolic checker and the simulator use the same
 * lists.
 *
 * Units: a buffer is an array of items. What an item is (a byte, an element, a block of a rank) depends on
 * the kind of collective (algorithm.h); every item holds the same data bytes in all three buffers.
 *
 * Order: steps are executed one after the other. A copy or a reduction is completed at once; a send or a
 * receive is only started. A fence, or the end of the list, waits for all messages started before. Until then
 * a range being received must not be accessed and a range being sent must not be written. Messages between
 * two ranks match in the order in which both sides start them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SCHED_SCHED_H
#define FP_COLL_SCHED_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sched_buf { BUF_NONE, BUF_SEND, BUF_RECV, BUF_TEMP };
#define SCHED_BUFS 4

enum step_kind { STEP_SEND, STEP_RECV, STEP_COPY, STEP_REDUCE, STEP_FENCE };

struct loc {
    enum sched_buf buf;
    int64_t at; /* index of the first item */
};

/* SEND, RECV: buf[0] is the data; BUF_NONE: an empty message (signal). COPY: buf[0] to buf[1]. REDUCE:
 * buf[2] = buf[0] op buf[1] for each element. buf[2] equals buf[1], or is distinct from both, or, if the
 * operator is commutative, equals buf[0]. */
struct step {
    uint8_t kind;
    uint8_t buf[3];
    /* rank in this rank's group, or PEER_REMOTE(rank in the other group) of an intercommunicator */
    int32_t peer;
    int64_t at[3];
    int64_t count; /* number of items */
};

#define PEER_REMOTE(rank)    (-1 - (rank))
#define PEER_IS_REMOTE(peer) ((peer) < 0)

struct sched {
    struct step *steps;
    uint32_t count, capacity;
    int64_t temp; /* size of the temporary buffer in items */
    bool failed;  /* an allocation failed while the schedule was generated */
};

void sched_init(struct sched *s);
void sched_free(struct sched *s);

/* Append a step. A count of zero appends nothing: both ranks of a message know its count. */
void sched_send(struct sched *s, int peer, struct loc from, int64_t count);
void sched_recv(struct sched *s, int peer, struct loc to, int64_t count);
void sched_copy(struct sched *s, struct loc from, struct loc to, int64_t count);
void sched_reduce(struct sched *s, struct loc left, struct loc right, struct loc out, int64_t count);
void sched_fence(struct sched *s); /* adds nothing if no message was started since the last fence */
void sched_signal(struct sched *s, int peer);
void sched_await(struct sched *s, int peer);
struct loc sched_temp(struct sched *s, int64_t items); /* allocates a range of the temporary buffer */

static inline struct loc loc_make(enum sched_buf buf, int64_t at)
{
    return (struct loc){buf, at};
}
static inline struct loc loc_add(struct loc l, int64_t items)
{
    return (struct loc){l.buf, l.at + items};
}
static inline bool loc_same(struct loc a, struct loc b)
{
    return a.buf == b.buf && a.at == b.at;
}

#endif
