/* mismatch.h: detects collective calls that do not match, without overhead in calls that match. The tag of
 * every collective message identifies the call: the operation, the root, its form, and its number among the
 * calls of this form on its communicator. Blocking, nonblocking and persistent calls are numbered separately,
 * so that a program whose ranks call, for example, MPI_Barrier and MPI_Iallreduce in different orders runs,
 * although MPI 5.0, 6.12, calls it erroneous. Therefore a message of a different call never matches a
 * receive; it remains in the queue of unexpected messages. A rank that is about to sleep, or that frees a
 * communicator, checks them: a message with the number of one of its own calls, but with a different
 * operation or root, proves the mismatch. In shared memory the number of the call that a rank is in proves a
 * mismatch in the same way. Calls that wait for each other without a message are found by mismatch_query.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_MISMATCH_H
#define FP_COLL_MISMATCH_H

#include "coll/coll.h"
#include "p2p/envelope.h"

#define COLL_PAST 64 /* number of past calls of each form that a communicator records */

/* A recorded call is one word, because every call stores one. COLL_PAST_OTHER: no message has the tag of
 * the call, because the call used shared memory, RDMA flags or multicast. */
#define COLL_PAST_OTHER      0x10000u
#define COLL_PAST_ROOT_SHIFT 32

struct proc;

/* Tags on the collective context, below those of obj/assembly.h: operation, root, form and number of the
 * call (of its creation, if it is persistent), with a bit for messages within one group of an
 * intercommunicator. */
#define COLL_TAG_MASK       0x0007ffff
#define COLL_TAG_FORM_SHIFT 19
#define COLL_TAG_LOCAL      0x00200000
#define COLL_TAG_ROOT_SHIFT 22
#define COLL_TAG_ROOTS      16 /* a tag holds the root modulo 16 */
#define COLL_TAG_KIND_SHIFT 26
/* Kinds of messages outside of collective operations; their tag contains only a number. */
#define COLL_KIND_AGREE    14              /* agreement on the shared block (shm/block.c) */
#define COLL_KIND_DEBUG    15              /* records that FISHPLATE_DEBUG=coll compares */
#define COLL_KIND_REPORTED COLL_KIND_DEBUG /* a recorded call that must not be compared any more */

_Static_assert(COLL_KINDS < COLL_KIND_AGREE && COLL_KIND_DEBUG << COLL_TAG_KIND_SHIFT < 0x40000000,
               "an operation fits into its bits");

static inline bool kind_has_root(unsigned kind)
{
    return kind < COLL_KINDS &&
           (1u << COLL_BCAST | 1u << COLL_GATHER | 1u << COLL_SCATTER | 1u << COLL_REDUCE) >> kind & 1;
}

static inline int coll_make_tag(unsigned kind, int root, enum coll_form form, uint32_t number)
{
    return (int)(kind << COLL_TAG_KIND_SHIFT |
                 ((unsigned)root & (COLL_TAG_ROOTS - 1)) << COLL_TAG_ROOT_SHIFT |
                 (unsigned)form << COLL_TAG_FORM_SHIFT | (number & COLL_TAG_MASK));
}
static inline enum coll_form coll_get_tag_form(int tag)
{
    return (enum coll_form)((unsigned)tag >> COLL_TAG_FORM_SHIFT & 3);
}

/* how: 0 or COLL_PAST_OTHER. */
static inline uint64_t coll_make_past(unsigned kind, int root, unsigned how)
{
    return (uint64_t)(uint32_t)root << COLL_PAST_ROOT_SHIFT | how | kind;
}
static inline int coll_get_past_root(uint64_t past)
{
    return (int)(past >> COLL_PAST_ROOT_SHIFT);
}
/* True if call number `tag & COLL_TAG_MASK` is among the first `calls` calls of its form on a rank. */
static inline bool call_is_made(uint32_t calls, int tag)
{
    return (((uint32_t)tag - calls) & COLL_TAG_MASK) > COLL_TAG_MASK / 2;
}

/* Message of rank 0 about the shared block. kind and root of its call allow a mismatch check. */
struct coll_agreement {
    uint64_t offset;
    uint32_t kind;
    int32_t root;
};

/* Checks all communicators now. Ends the job with a message that names both calls if they do not match. */
void mismatch_check_all(struct proc *p);
/* Checks one communicator that has no calls in progress. */
void mismatch_check_comm(const struct comm *c);

/* Returns the communicator that this envelope identifies; NULL: none, or freed. */
struct comm *mismatch_comm(struct proc *p, struct envelope env);
/* Compares another rank's call with the call of the same number on this rank, and ends the job if they
 * differ. Returns false if this rank has not made the call yet. */
bool mismatch_compare(const struct comm *c, struct envelope env);
/* End the job. absent: another rank waits for a call that this rank will never make. crossed: two ranks
 * each wait in a call that the other one has not made; `tag` identifies the call of this rank. */
void mismatch_report_absent(const struct comm *c, struct envelope env);
void mismatch_report_deadlock(const struct comm *c, int tag, struct envelope env);

#endif
