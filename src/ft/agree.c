/* agree.c: the state machine of agreement by a tree with early return (agree.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/agree.h"

#include <string.h>

/* The parts of agree.data[]. */
static uint64_t *agree_own_words(struct agree *a) /* words that this process contributes */
{
    return a->data;
}
static uint64_t *agree_sum(struct agree *a) /* combination of the contributions received in this epoch */
{
    return a->data + a->nwords;
}
static uint64_t *agree_result_words(struct agree *a) /* words of the decision */
{
    return a->data + 2 * (size_t)a->nwords;
}
static uint64_t *agree_set(struct agree *a, unsigned which)
{
    return a->data + 3 * (size_t)a->nwords + which * (size_t)a->nbits;
}
#define HAVE(a)     agree_set(a, 0) /* processes whose contribution is in the sum */
#define DEAD(a)     agree_set(a, 1)
#define GONE(a)     agree_set(a, 2) /* processes that the decision names dead */
#define INFORMED(a) agree_set(a, 3) /* processes that were sent the decision in this epoch */
#define ASKED(a)    agree_set(a, 4) /* processes that have sent contributions to this one in this epoch */
#define SETS        5

static bool set_contains(const uint64_t *s, uint32_t i)
{
    return s[i / 64] >> i % 64 & 1;
}
static void set_add(uint64_t *s, uint32_t i)
{
    s[i / 64] |= (uint64_t)1 << i % 64;
}

size_t agree_size(uint32_t n, uint32_t nwords)
{
    return sizeof(struct agree) + (3 * (size_t)nwords + SETS * (size_t)((n + 63) / 64)) * sizeof(uint64_t);
}

static void sum_clear(struct agree *a)
{
    const size_t ands = a->nwords - a->nmost;
    memset(agree_sum(a), 0xff, ands * sizeof(uint64_t));
    memset(agree_sum(a) + ands, 0, a->nmost * sizeof(uint64_t));
}

static void sum_add(struct agree *a, const uint64_t *words)
{
    for (uint32_t i = 0; i < a->nwords - a->nmost; i++)
        agree_sum(a)[i] &= words[i];
    for (uint32_t i = a->nwords - a->nmost; i < a->nwords; i++)
        agree_sum(a)[i] = words[i] > agree_sum(a)[i] ? words[i] : agree_sum(a)[i];
}

size_t agree_message_size(const struct agree *a)
{
    return sizeof(struct agree_message) + (a->nwords + 2 * (size_t)a->nbits) * sizeof(uint64_t);
}

void agree_init(struct agree *a, uint32_t n, uint32_t me, uint32_t nwords)
{
    memset(a, 0, agree_size(n, nwords));
    a->n = n;
    a->me = me;
    a->nwords = nwords;
    a->nbits = (n + 63) / 64;
    a->decided_epoch = a->sent_to = n;
    sum_clear(a);
}

void agree_set_max_words(struct agree *a, uint32_t nmost)
{
    a->nmost = nmost;
    sum_clear(a);
}

const uint64_t *agree_get_result(const struct agree *a)
{
    return agree_result_words((struct agree *)(uintptr_t)a);
}

bool agree_is_named_dead(const struct agree *a, uint32_t rank)
{
    return set_contains(GONE((struct agree *)(uintptr_t)a), rank);
}

/* ---- the tree: places among the living members ---- */

static uint32_t agree_place_of_rank(struct agree *a, uint32_t rank)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < rank; i++)
        place += !set_contains(DEAD(a), i);
    return place;
}

static uint32_t agree_rank_of_place(struct agree *a, uint32_t place)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (!set_contains(DEAD(a), i) && place-- == 0)
            return i;
    return a->n;
}

/* Returns the number of places in the subtree of `place`: the lowest one bit of `place`. */
static uint32_t subtree_size(uint32_t place, uint32_t n)
{
    return place ? place & -place : n;
}

static bool has_subtree_contributed(struct agree *a, uint32_t place)
{
    uint32_t span = subtree_size(place, a->n), at = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        if (set_contains(DEAD(a), i))
            continue;
        if (at >= place && at - place < span && !set_contains(HAVE(a), i))
            return false;
        at++;
    }
    return true;
}

/* ---- messages ---- */

static void agree_send_frame(struct agree *a, const struct agree_out *out, uint32_t to, enum agree_kind kind,
                             bool decision)
{
    struct agree_message *m = out->scratch;
    const size_t words = a->nwords * sizeof(uint64_t), bits = a->nbits * sizeof(uint64_t);
    *m = (struct agree_message){.kind = kind, .epoch = a->epoch, .decided = decision};
    memcpy(m->data, decision ? agree_result_words(a) : agree_sum(a), words);
    memcpy(m->data + a->nwords, HAVE(a), bits);
    memcpy(m->data + a->nwords + a->nbits, decision ? GONE(a) : DEAD(a), bits);
    out->send(out->arg, to, m);
}

static void agree_send_state(struct agree *a, const struct agree_out *out, uint32_t to)
{
    if (set_contains(INFORMED(a), to))
        return;
    set_add(INFORMED(a), to);
    agree_send_frame(a, out, to, AGREE_DOWN, true);
}

static void agree_notify_children(struct agree *a, const struct agree_out *out, uint32_t place)
{
    for (uint32_t bit = 1; bit < subtree_size(place, a->n) && bit < a->n; bit *= 2) {
        uint32_t child = agree_rank_of_place(a, place + bit);
        if (child == a->n)
            break;
        agree_send_state(a, out, child);
    }
}

/* Sends the decision to all processes that have sent contributions to this one: a process that knows of
 * more deaths may be a child of this process before this process is notified of these deaths. */
static void agree_notify_senders(struct agree *a, const struct agree_out *out)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (set_contains(ASKED(a), i))
            agree_send_state(a, out, i);
}

static void agree_decide(struct agree *a)
{
    a->decided = true;
    a->decided_epoch = a->epoch;
}

static void try_to_decide(struct agree *a)
{
    if (a->decided || a->has_received_decision) {
        agree_decide(a);
        return;
    }
    if (!a->begun || !has_subtree_contributed(a, 0))
        return;
    memcpy(agree_result_words(a), agree_sum(a), a->nwords * sizeof(uint64_t));
    memcpy(GONE(a), DEAD(a), a->nbits * sizeof(uint64_t));
    agree_decide(a);
}

/* Sends all messages and makes all decisions that are possible without further input. */
static void agree_advance(struct agree *a, const struct agree_out *out)
{
    const uint32_t place = agree_place_of_rank(a, a->me);
    if (a->epoch == a->me)
        try_to_decide(a);
    if (a->decided && a->decided_epoch == a->epoch) {
        agree_notify_children(a, out, place);
        agree_notify_senders(a, out);
        return;
    }
    if (a->epoch == a->me)
        return;
    const uint32_t parent = agree_rank_of_place(a, place & (place - 1));
    if (a->sent_to == parent && !a->dirty)
        return;
    const bool decision = a->decided || a->has_received_decision;
    if (!decision && !(a->begun && has_subtree_contributed(a, place)))
        return;
    a->sent_to = parent;
    a->dirty = false;
    agree_send_frame(a, out, parent, AGREE_UP, decision);
}

/* ---- events ---- */

static void agree_contribute(struct agree *a)
{
    sum_add(a, agree_own_words(a));
    set_add(HAVE(a), a->me);
    a->dirty = true;
}

/* Enters an epoch: all processes below `epoch` are dead, so the next living process is the root. */
static void enter_epoch(struct agree *a, uint32_t epoch)
{
    for (uint32_t i = a->epoch; i < epoch; i++)
        set_add(DEAD(a), i);
    while (epoch < a->n && set_contains(DEAD(a), epoch))
        epoch++;
    if (epoch == a->epoch)
        return;
    a->epoch = epoch;
    a->sent_to = a->n;
    a->has_received_decision = false;
    memset(HAVE(a), 0, a->nbits * sizeof(uint64_t));
    memset(INFORMED(a), 0, a->nbits * sizeof(uint64_t));
    memset(ASKED(a), 0, a->nbits * sizeof(uint64_t));
    sum_clear(a);
    a->dirty = true;
    if (a->begun)
        agree_contribute(a);
}

void agree_begin(struct agree *a, const uint64_t *words, const struct agree_out *out)
{
    memcpy(agree_own_words(a), words, a->nwords * sizeof(uint64_t));
    a->begun = true;
    agree_contribute(a);
    agree_advance(a, out);
}

void agree_member_died(struct agree *a, uint32_t rank, const struct agree_out *out)
{
    if (rank >= a->n || rank == a->me || set_contains(DEAD(a), rank))
        return;
    set_add(DEAD(a), rank);
    enter_epoch(a, a->epoch);
    agree_advance(a, out);
}

void agree_end_without_result(struct agree *a, const struct agree_out *out)
{
    memcpy(agree_result_words(a), agree_own_words(a), a->nwords * sizeof(uint64_t));
    memcpy(GONE(a), DEAD(a), a->nbits * sizeof(uint64_t));
    agree_decide(a);
    agree_advance(a, out);
}

static void accept_decision(struct agree *a, const struct agree_message *m)
{
    if (a->decided) /* a new root has confirmed this decision */
        return;
    memcpy(agree_result_words(a), m->data, a->nwords * sizeof(uint64_t));
    memcpy(GONE(a), m->data + a->nwords + a->nbits, a->nbits * sizeof(uint64_t));
}

static void merge_contributions(struct agree *a, const struct agree_message *m)
{
    const uint64_t *theirs = m->data + a->nwords;
    sum_add(a, m->data);
    for (uint32_t i = 0; i < a->nbits; i++) {
        a->dirty |= (theirs[i] & ~HAVE(a)[i]) != 0;
        HAVE(a)[i] |= theirs[i];
    }
}

void agree_receive(struct agree *a, uint32_t from, const struct agree_message *m, const struct agree_out *out)
{
    if (from >= a->n || m->epoch >= a->n || m->epoch < a->epoch || m->epoch > a->me)
        return;
    enter_epoch(a, m->epoch);
    if (m->epoch != a->epoch)
        return;
    if (m->kind == AGREE_UP)
        set_add(ASKED(a), from);
    if (m->kind == AGREE_DOWN) {
        accept_decision(a, m);
        agree_decide(a);
    } else if (m->decided) {
        if (!a->has_received_decision) {
            accept_decision(a, m);
            a->dirty = true;
        }
        a->has_received_decision = true;
    } else {
        merge_contributions(a, m);
    }
    agree_advance(a, out);
}
