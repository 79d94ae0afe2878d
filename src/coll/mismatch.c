/* mismatch.c: finds messages and flags of other ranks that belong to a different call than the one this rank
 * has made. A mismatch is reported only if it is proved: a different call with the same number on the same
 * communicator.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/mismatch.h"

#include <stdio.h>

#include "base/place.h"
#include "boot/boot.h"
#include "coll/shm/block.h"
#include "coll/comm_state.h"
#include "obj/assembly.h"
#include "obj/context.h"

#define MESSAGES_MAX 4096 /* limit of unexpected messages to check: a program may have millions */

/* Properties of a call of this or another rank, as far as they are known here. */
struct known {
    int rank;
    unsigned kind;
    int root; /* modulo COLL_TAG_ROOTS for a call of another rank */
    enum coll_form form;
    bool other;  /* the call sends no messages with its tag (COLL_PAST_OTHER) */
    bool remote; /* `rank` is a rank in the remote group of an intercommunicator */
};

static bool known_calls_differ(const struct known *mine, const struct known *theirs)
{
    return mine->kind != theirs->kind || mine->root % COLL_TAG_ROOTS != theirs->root;
}

static void describe_known_call(const struct comm *c, const struct known *k, char *out, size_t size)
{
    char root[48] = "";
    if (kind_has_root(k->kind) && !c->remote)
        snprintf(root, sizeof(root), " with root %d%s", k->root % COLL_TAG_ROOTS,
                 c->size <= COLL_TAG_ROOTS ? "" : " (modulo 16)");
    snprintf(out, size, "rank %d%s called %s%s", k->rank, k->remote ? " of the other group" : "",
             k->kind < COLL_KINDS ? coll_call_name(k->kind, k->form) : "another collective operation", root);
}

/* Ends the job with this sentence and the MPI call in which this rank noticed the mismatch, with its caller. */
static __attribute__((noinline, cold)) _Noreturn void end_job_in_call(const struct comm *c,
                                                                      const char *sentence)
{
    char call[64], caller[400], message[1280];
    place_call_text(call, sizeof(call), caller, sizeof(caller));
    snprintf(message, sizeof(message), call[0] ? "%s.\n    Rank %d noticed it in %s%s." : "%s", sentence,
             c->rank, call, caller);
    /* other errors with the same cause end the job with the same class */
    boot_abort(c->proc->boot, MPI_ERR_OTHER, message);
}

static __attribute__((noinline, cold)) void mismatch_end_job(const struct comm *c, const struct known *mine,
                                                             const struct known *theirs)
{
    char sentence[640], one[128], other[128];
    describe_known_call(c, mine, one, sizeof(one));
    describe_known_call(c, theirs, other, sizeof(other));
    snprintf(sentence, sizeof(sentence),
             "collective calls do not match on %s: %s, but %s%s; run it with FISHPLATE_DEBUG=coll to see "
             "counts, datatypes and source lines",
             comm_label(c), one, other, known_calls_differ(mine, theirs) ? "" : " (in another way)");
    end_job_in_call(c, sentence);
}

/* Finds this rank's call with this form and number. Returns false if the call has not been made, is no
 * longer recorded, or was reported. */
static bool find_call_by_number(const struct comm *c, enum coll_form form, uint32_t number, struct known *out)
{
    const uint32_t calls = form < COLL_FORMS ? c->coll_sequence[form] : 0;
    const uint32_t age = (calls - 1 - number) & COLL_TAG_MASK;
    if (!c->coll || age >= COLL_PAST || age >= calls)
        return false;
    const uint64_t past = c->coll->past[form][(calls - 1 - age) % COLL_PAST];
    *out = (struct known){.rank = c->rank,
                          .kind = past & 0xff,
                          .root = coll_get_past_root(past),
                          .form = form,
                          .other = (past & COLL_PAST_OTHER) != 0};
    return out->kind != COLL_KIND_REPORTED;
}

/* Returns the communicator whose calls are numbered in the tags of this context. */
static struct comm *find_numbering_comm(struct proc *p, uint64_t context, bool local)
{
    struct comm *c = comm_of_context(p, context);
    if (!c || !local)
        return c;
    for (int i = 0; i < CONTEXT_IDS; i++)
        if (p->comms[i] && p->comms[i]->local_comm == c)
            return p->comms[i];
    return NULL;
}

/* Checks rank 0's announcement of the shared block, which names its call, against the call of this rank. */
static void check_agreement(const struct comm *c, const struct known *mine, int source,
                            const struct coll_agreement *first)
{
    const struct known theirs = {.rank = source,
                                 .kind = first->kind,
                                 .root = kind_has_root(first->kind) ? first->root % COLL_TAG_ROOTS : 0};
    if (!mine->other)
        mismatch_end_job(c, mine, &theirs);
}

/* Returns the call of another rank, decoded from the envelope of its message. */
static struct known known_call_from_envelope(const struct comm *c, struct envelope env)
{
    return (struct known){.rank = env.source,
                          .kind = (unsigned)env.tag >> COLL_TAG_KIND_SHIFT,
                          .root = env.tag >> COLL_TAG_ROOT_SHIFT & (COLL_TAG_ROOTS - 1),
                          .form = coll_get_tag_form(env.tag),
                          .remote = c->remote && !(env.tag & COLL_TAG_LOCAL)};
}

/* Checks an unexpected message. */
static void check_message(void *arg, struct envelope env, const void *payload, uint64_t length)
{
    struct proc *p = arg;
    if (!(env.context & 1) || env.tag < 0 || env.tag >= ASSEMBLY_TAG_FIRST)
        return;
    const bool local = (env.tag & COLL_TAG_LOCAL) != 0;
    const struct comm *c = find_numbering_comm(p, env.context, local);
    const enum coll_form form = coll_get_tag_form(env.tag);
    const unsigned kind = (unsigned)env.tag >> COLL_TAG_KIND_SHIFT;
    struct known mine;
    if (c && c->coll && kind == COLL_KIND_DEBUG && c->coll->check_record)
        c->coll->check_record(c, payload, length);
    if (!c || !find_call_by_number(c, form, (uint32_t)env.tag & COLL_TAG_MASK, &mine))
        return;
    const struct known theirs = known_call_from_envelope(c, env);
    if (theirs.kind == COLL_KIND_AGREE && length == sizeof(struct coll_agreement))
        check_agreement(c, &mine, env.source, payload);
    else if (theirs.kind < COLL_KINDS && (known_calls_differ(&mine, &theirs) || mine.other))
        mismatch_end_job(c, &mine, &theirs);
}

/* Checks the flags in shared memory: a rank that waits for messages does not poll them. */
static void check_shared_flags(const struct comm *c)
{
    const struct shared_head *head = c->coll->shared->head;
    for (int r = 0; r < c->size; r++) {
        const uint64_t entered = atomic_load_explicit(&head->rank[r].entered, memory_order_relaxed);
        const uint32_t number = (uint32_t)(entered >> 32);
        const unsigned kind = (unsigned)(entered >> 16 & 0xffff) - 1;
        const struct known theirs = {
            .rank = r, .kind = kind, .root = kind_has_root(kind) ? (int)(entered & (COLL_TAG_ROOTS - 1)) : 0};
        struct known mine;
        if (r == c->rank || !entered || number >= c->coll_sequence[FORM_BLOCKING] ||
            !find_call_by_number(c, FORM_BLOCKING, number & COLL_TAG_MASK, &mine))
            continue;
        if (!mine.other || known_calls_differ(&mine, &theirs))
            mismatch_end_job(c, &mine, &theirs);
    }
}

void mismatch_check_all(struct proc *p)
{
    p2p_visit_unexpected(p->p2p, MESSAGES_MAX, check_message, p);
    for (int i = 0; i < CONTEXT_IDS; i++) {
        const struct comm *c = p->comms[i];
        if (c && c->coll && c->coll->shared)
            check_shared_flags(c);
    }
}

void mismatch_check_comm(const struct comm *c)
{
    p2p_visit_unexpected(c->proc->p2p, MESSAGES_MAX, check_message, c->proc);
    if (c->coll->shared)
        check_shared_flags(c);
}

struct comm *mismatch_comm(struct proc *p, struct envelope env)
{
    return (env.context & 1) && env.tag >= 0
               ? find_numbering_comm(p, env.context, (env.tag & COLL_TAG_LOCAL) != 0)
               : NULL;
}

bool mismatch_compare(const struct comm *c, struct envelope env)
{
    const enum coll_form form = coll_get_tag_form(env.tag);
    const struct known theirs = known_call_from_envelope(c, env);
    struct known mine;
    if (form >= COLL_FORMS || theirs.kind >= COLL_KINDS || !call_is_made(c->coll_sequence[form], env.tag))
        return false;
    if (find_call_by_number(c, form, (uint32_t)env.tag & COLL_TAG_MASK, &mine) &&
        (known_calls_differ(&mine, &theirs) || mine.other))
        mismatch_end_job(c, &mine, &theirs);
    return true;
}

void mismatch_report_absent(const struct comm *c, struct envelope env)
{
    const struct known theirs = known_call_from_envelope(c, env);
    char sentence[480], other[128];
    describe_known_call(c, &theirs, other, sizeof(other));
    snprintf(sentence, sizeof(sentence),
             "collective calls do not match on %s: %s, and rank %d called MPI_Finalize without it",
             comm_label(c), other, c->rank);
    end_job_in_call(c, sentence);
}

void mismatch_report_deadlock(const struct comm *c, int tag, struct envelope env)
{
    const struct known theirs = known_call_from_envelope(c, env);
    const struct known mine = known_call_from_envelope(c, (struct envelope){.source = c->rank, .tag = tag});
    char sentence[640], one[128], other[128];
    describe_known_call(c, &mine, one, sizeof(one));
    describe_known_call(c, &theirs, other, sizeof(other));
    snprintf(sentence, sizeof(sentence),
             "collective calls do not match on %s: %s and waits for rank %d, which has not called it; %s and "
             "waits for rank %d, which has not called it (blocking and nonblocking calls do not match each "
             "other)",
             comm_label(c), one, theirs.rank, other, mine.rank);
    end_job_in_call(c, sentence);
}
