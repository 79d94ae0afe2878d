/* context.c: implements the mask of free context ids and the agreement on ids (context.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/context.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "obj/comm.h"
#include "obj/epoch.h"

/* Bits of the first word in every round of the agreement. */
#define CAN_CONTINUE 1u /* the sender has not failed */
#define NO_CLAIMS \
    2u /* the sender has no tentative claims: all its ids that are not free belong to communicators */
#define IDS_CLAIMED 4u /* in the second round: the sender has claimed the ids */

_Static_assert(sizeof(((struct proc *)0)->context_mask) == CONTEXT_WORDS * sizeof(uint64_t),
               "one bit per context id");

void context_ids_init(struct proc *p)
{
    memset(p->context_mask, 0xff, sizeof(p->context_mask));
    for (uint32_t id = 0; id < CONTEXT_IDS_RESERVED; id++)
        p->context_mask[id / 64] &= ~(1ull << id % 64);
}

void context_id_release(struct proc *p, uint32_t number)
{
    const uint32_t id = number % CONTEXT_IDS;
    p->context_mask[id / 64] |= 1ull << id % 64;
}

static bool id_is_free(const struct proc *p, uint32_t number)
{
    const uint32_t id = number % CONTEXT_IDS;
    return p->context_mask[id / 64] >> id % 64 & 1;
}

void context_id_reserve(struct proc *p, uint32_t number)
{
    const uint32_t id = number % CONTEXT_IDS;
    p->context_mask[id / 64] &= ~(1ull << id % 64);
}

void context_add_epoch(uint32_t *ids, int n, uint64_t epoch)
{
    CHECK(epoch < CONTEXT_EPOCHS, "a process of another job offers an invalid epoch of communicators");
    for (int i = 0; i < n; i++)
        ids[i] += (uint32_t)epoch * CONTEXT_IDS;
}

struct comm *comm_of_context(const struct proc *p, uint64_t context)
{
    struct comm *c = p->comms[context_id_of((uint32_t)context)];
    return c && (c->context ^ context) < 2 ? c : NULL;
}

bool context_pick_ids(const uint64_t *mask, int first_word, int last_word, uint32_t start, int wanted,
                      uint32_t *ids)
{
    uint32_t words = (uint32_t)(last_word - first_word), bits = 64 * words;
    int found = 0;
    start %= bits;
    /* One extra iteration: the bits below `start` in the first word are searched last. */
    for (uint32_t i = 0; i <= words && found < wanted; i++) {
        uint32_t word = (start / 64 + i) % words;
        uint64_t set = mask[(uint32_t)first_word + word];
        uint64_t before = (1ull << start % 64) - 1;
        if (i == 0)
            set &= ~before;
        else if (i == words)
            set &= before;
        for (; set && found < wanted; set &= set - 1)
            ids[found++] = 64 * ((uint32_t)first_word + word) + (uint32_t)__builtin_ctzll(set);
    }
    return found == wanted;
}

/* Returns the first bit to search for shared ids. Leaders choose it at random, other processes accept any
 * value: concurrent creations then seldom choose the same ids, and if so, choose different ids in the next
 * attempt. */
static uint64_t context_choose_start(const struct agreement *g)
{
    const struct gang *gang = &g->round.gang;
    if (gang->members->rank != gang->leader)
        return UINT64_MAX;
    uint64_t x = clock_ns() ^ (uint64_t)gang->proc->rank << 48 ^ (uintptr_t)g;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static void agreement_start_first_round(struct agreement *g);

static void agreement_conclude(struct agreement *g, int error)
{
    g->error = error;
    g->round.records = g->records;
    g->round.others = g->others;
    g->done(g);
}

static void on_claim_agreed(struct assembly *a)
{
    struct agreement *g = container_of(a, struct agreement, round);
    struct proc *p = a->gang.proc;
    p->context_claims--;
    if (!a->error && g->words[0] & IDS_CLAIMED) {
        agreement_conclude(g, MPI_SUCCESS);
        return;
    }
    for (int i = 0; i < g->wanted && g->claimed; i++)
        context_id_release(p, g->ids[i]);
    if (a->error)
        agreement_conclude(g, a->error);
    else
        agreement_start_first_round(g);
}

static void agreement_claim(struct agreement *g)
{
    struct proc *p = g->round.gang.proc;
    g->claimed = true;
    for (int i = 0; i < g->wanted; i++)
        g->claimed = g->claimed && id_is_free(p, g->ids[i]) && context_is_current(p, g->ids[i]);
    for (int i = 0; i < g->wanted && g->claimed; i++)
        context_id_reserve(p, g->ids[i]);
    p->context_claims++;
    g->words[0] = g->claimed ? IDS_CLAIMED : 0;
    g->round.nwords = 1;
    g->round.max_words = 0;
    g->round.done = on_claim_agreed;
    assembly_start(&g->round);
}

static void first_round_over(struct assembly *a)
{
    struct agreement *g = container_of(a, struct agreement, round);
    struct proc *p = a->gang.proc;
    const uint64_t *mask = g->words + 2, epoch = g->words[2 + CONTEXT_WORDS];
    if (g->single)
        p->context_busy = false;
    g->single = false;
    if (a->records) {
        g->records = a->records;
        a->received_record_size = a->record_size;
        g->others = a->others;
    }
    g->others = MAX(g->others, a->others);
    a->record_size = 0; /* further rounds need not gather the records again */
    if (a->error || g->local_error) {
        agreement_conclude(g, g->local_error ? g->local_error : a->error);
    } else if (!(g->words[0] & CAN_CONTINUE)) {
        agreement_conclude(
            g, err_set(MPI_ERR_OTHER, "another process of the communicator failed to create its part"));
    } else if (context_pick_ids(mask, 0, CONTEXT_SINGLE_WORDS, 0, g->wanted, g->ids)) {
        context_add_epoch(g->ids, g->wanted, epoch);
        for (int i = 0; i < g->wanted; i++)
            context_id_reserve(p, g->ids[i]);
        agreement_conclude(g, MPI_SUCCESS);
    } else if (context_pick_ids(mask, CONTEXT_SINGLE_WORDS, CONTEXT_WORDS, (uint32_t)g->words[1], g->wanted,
                                g->ids)) {
        context_add_epoch(g->ids, g->wanted, epoch);
        agreement_claim(g);
    } else if (g->words[0] & NO_CLAIMS && g->offered_all) {
        agreement_conclude(g, err_set(MPI_ERR_OTHER, "more than %d communicators exist at once; free some",
                                      CONTEXT_IDS - 64));
    } else {
        g->offered_all = g->words[0] & NO_CLAIMS;
        agreement_start_first_round(g);
    }
}

static void agreement_start_first_round(struct agreement *g)
{
    struct proc *p = g->round.gang.proc;
    context_free_retired_ids(p, g->offered_all);
    g->words[0] = (g->local_error ? 0 : CAN_CONTINUE) | (p->context_claims ? 0 : NO_CLAIMS);
    g->words[1] = context_choose_start(g);
    memcpy(g->words + 2, p->context_mask, sizeof(p->context_mask));
    if (p->context_busy)
        memset(g->words + 2, 0, CONTEXT_SINGLE_WORDS * sizeof(uint64_t));
    else
        g->single = p->context_busy = true;
    g->round.words = g->words;
    g->words[2 + CONTEXT_WORDS] = p->context_epoch;
    g->round.nwords = 3 + CONTEXT_WORDS;
    g->round.max_words = 1;
    g->round.done = first_round_over;
    assembly_start(&g->round);
}

void agreement_start(struct agreement *g)
{
    g->single = g->claimed = g->offered_all = false;
    g->records = NULL;
    g->others = 0;
    agreement_start_first_round(g);
}
