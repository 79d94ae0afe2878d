/* share.c: divides a large copy between the processors of sender and receiver. The sender opens a shared copy
 * in the target's arena. Both sides claim pieces by advancing the word `next`. Each piece costs a system
 * call, so the first pieces are large: half of the remaining bytes, or a third for the side that writes to
 * the other process's memory, which is slower. Later pieces are smaller, so that neither side waits long for
 * the last piece of the other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory/share.h"
#include "memory/iov.h"
#include <stdlib.h>

#define PIECE_MIN   (32u << 10)
#define PIECE_WORTH (64u << 10) /* smallest piece of a copy that is long enough for several pieces */
#define PIECE_MAX   (2u << 20)
#define RING_MIN    (32u << 10) /* remaining bytes from which the other side's doorbell is rung */
#define ALONE_MAX   32u
#define LATE_NS     (20 * NS_US)
#define CLOSED      0xffffffffull
#define ATTEND_NS   (200 * NS_US)
#define ATTEND_LONG (2 * NS_MS)

/* State of one side of a copy. */
struct part {
    struct sh_copy *c;
    uint64_t number, total;
    uint64_t expect, got;
    bool receiving; /* this side writes to its own memory */
    unsigned turns; /* number of times that the other side claimed pieces between two of this side */
};

static uint64_t share_word_offset(uint64_t word)
{
    return word & 0xffffffffu;
}

static uint64_t share_piece_size(const struct part *p, uint64_t left)
{
    uint64_t least = p->total < 4 * PIECE_WORTH ? PIECE_MIN : PIECE_WORTH;
    uint64_t want = left / (p->receiving ? 2 : 3) & ~4095ull;
    return min_u64(left, min_u64(max_u64(want, least), PIECE_MAX));
}

static bool claim_piece(struct part *p, uint64_t *at, uint64_t *len)
{
    uint64_t word = atomic_load_explicit(&p->c->next, memory_order_acquire);
    do {
        *at = share_word_offset(word);
        if (word >> 32 != p->number || *at >= p->total)
            return false;
        *len = share_piece_size(p, p->total - *at);
    } while (!atomic_compare_exchange_weak(&p->c->next, &word, word + *len));
    p->turns += *at != p->expect;
    p->expect = *at + *len;
    p->got += *len;
    return true;
}

static bool share_move_vector(pid_t pid, bool read, const struct iovec *mine, int nm,
                              const struct iovec *theirs, int nt, uint64_t at, uint64_t len)
{
    struct iovec l[MAX_SGE], r[MAX_SGE];
    unsigned long nl = (unsigned long)iov_slice(mine, nm, at, len, l);
    unsigned long nr = (unsigned long)iov_slice(theirs, nt, at, len, r);
    return share_move(pid, read, l, nl, r, nr) == (ssize_t)len;
}

/* --- the sender --- */

bool share_is_worthwhile(struct peer *p)
{
    unsigned n = atomic_load_explicit(&p->until_share, memory_order_relaxed);
    if (n)
        atomic_store_explicit(&p->until_share, n - 1, memory_order_relaxed);
    return !n;
}

/* Updates the estimate of whether sharing copies with this peer saves time, after one shared copy. */
static void share_update_estimate(struct peer *p, bool useful, bool late)
{
    unsigned n = late ? 6 : useful ? 0 : atomic_load_explicit(&p->unhelped, memory_order_relaxed) + 1;
    atomic_store_explicit(&p->unhelped, n, memory_order_relaxed);
    if (n)
        atomic_store_explicit(&p->until_share, n > 5 ? ALONE_MAX : 1u << n, memory_order_relaxed);
}

static struct sh_copy *claim_copy_entry(struct arena *a)
{
    static atomic_uint tries;
    bool look = atomic_fetch_add_explicit(&tries, 1, memory_order_relaxed) % 64 == 63;
    for (unsigned i = 0; i < SHARED_COPIES; i++) {
        unsigned owner = atomic_load_explicit(&a->copy[i].lock.owner, memory_order_relaxed);
        if (owner && (!look || owner == shlock_self || shlock_owner_alive(owner)))
            continue;
        if (atomic_compare_exchange_strong(&a->copy[i].lock.owner, &owner, shlock_self))
            return &a->copy[i];
    }
    return NULL;
}

static void share_encode_pieces(struct sh_piece *out, const struct iovec *iov, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = (struct sh_piece){(uintptr_t)iov[i].iov_base, iov[i].iov_len};
}

/* Waits for the pieces that the other side has claimed. Its process may have been preempted in the middle
 * of a piece; help that takes several times as long as a copy by this process alone is recorded as late.
 * began: start of this side's part. */
static bool share_wait_helpers(struct peer *p, const struct part *part, uint64_t end, uint64_t began,
                               bool *late)
{
    *late = false;
    if (part->got >= end)
        return true;
    uint64_t now = now_ns(), mine = max_u64(part->got, PIECE_MIN);
    uint64_t limit = now + 3 * (now - began) * (end - part->got) / mine + LATE_NS;
    for (unsigned turn = 0; part->got + share_word_offset(atomic_load(&part->c->done)) < end;) {
        if (atomic_load(&p->dead))
            return false;
        *late = *late || (turn % 16 == 15 && now_ns() > limit);
        if (turn < 4096) {
            spin_wait(&turn);
        } else { /* a helper of lower priority does not run after a yield */
            struct timespec t = {0, 50000};
            *late = true;
            nanosleep(&t, NULL);
        }
    }
    return true;
}

bool share_copy(struct peer *p, bool inward, const struct iovec *far, int nfar, const struct iovec *near,
                int nnear, uint64_t n)
{
    struct sh_copy *c = claim_copy_entry(p->arena);
    if (!c)
        return false;
    uint64_t number = ((atomic_load(&c->next) >> 32) + 1) & 0xffffffffu, at, len;
    unsigned bit = 1u << (c - p->arena->copy);
    struct part part = {.c = c, .number = number, .total = n, .receiving = inward};
    atomic_store(&c->next, number << 32 | CLOSED); /* a late helper of the previous copy stops */
    c->pid = (uint32_t)proc.pid;
    c->nnear = (uint32_t)nnear;
    c->nfar = (uint32_t)nfar;
    c->inward = inward;
    c->total = n;
    share_encode_pieces(c->near, near, nnear);
    share_encode_pieces(c->far, far, nfar);
    atomic_store(&c->failed, 0);
    atomic_store(&c->done, number << 32);
    atomic_store(&c->next, number << 32);
    atomic_fetch_or(&p->arena->copies_open, bit);

    uint64_t began = now_ns();
    bool ok = true, rung = atomic_load(&p->arena->attentive);
    while (ok && claim_piece(&part, &at, &len)) {
        ok = share_move_vector(p->pid, inward, near, nnear, far, nfar, at, len);
        /* A polling program would have claimed a piece by now. If none has, the engine thread is woken,
         * unless the target is making a copy of its own and will poll after it. */
        if (!rung && share_word_offset(atomic_load(&c->next)) == part.expect && n - part.expect >= RING_MIN &&
            atomic_load_explicit(&p->arena->copying, memory_order_relaxed) == 0) {
            atomic_store(&p->arena->help_requested, 1);
            member_ring(p->slot);
        }
        rung = true;
    }
    uint64_t end = min_u64(n, share_word_offset(atomic_exchange(&c->next, number << 32 | CLOSED)));
    bool late, all = share_wait_helpers(p, &part, end, began, &late);
    atomic_fetch_and(&p->arena->copies_open, ~bit);
    ok = ok && all && !atomic_load(&c->failed);
    share_update_estimate(p, part.got < n, late);
    shlock_unlock(&c->lock);
    return ok;
}

/* --- the helper --- */

static atomic_uint helping;   /* threads of this process that copy a piece */
static atomic_bool by_poller; /* a polling thread helped: the engine thread need not stay awake */

struct job {
    struct part part;
    pid_t pid;
    bool inward;
    int nnear, nfar;
    struct iovec near[MAX_SGE], far[MAX_SGE];
};

static int share_decode_pieces(struct iovec *out, const struct sh_piece *in, uint32_t n)
{
    n = n < MAX_SGE ? n : MAX_SGE;
    for (uint32_t i = 0; i < n; i++)
        out[i] = (struct iovec){(void *)(uintptr_t)in[i].addr, in[i].len};
    return (int)n;
}

/* Reads the description of a copy. It may be overwritten by the next copy; `next` then has another number
 * and no piece is taken, because the exchange that takes one is ordered after these reads. */
static void read_copy_job(struct sh_copy *c, struct job *j)
{
    uint64_t word = atomic_load(&c->next);
    j->part = (struct part){.c = c,
                            .number = word >> 32,
                            .total = c->total,
                            .receiving = !c->inward,
                            .expect = share_word_offset(word)};
    j->pid = (pid_t)c->pid;
    j->inward = c->inward;
    j->nnear = share_decode_pieces(j->near, c->near, c->nnear);
    j->nfar = share_decode_pieces(j->far, c->far, c->nfar);
}

static void share_report_done(struct sh_copy *c, uint64_t number, uint64_t len)
{
    uint64_t d = atomic_load(&c->done);
    while (d >> 32 == number && !atomic_compare_exchange_weak(&c->done, &d, d + len))
        ;
}

/* Copies at most `most` pieces. Returns true if both sides claimed pieces alternately, that is, worked in
 * parallel. */
static bool share_help_copy(struct sh_copy *c, unsigned most, uint64_t *got)
{
    struct job j;
    uint64_t at, len;
    if (share_word_offset(atomic_load_explicit(&c->next, memory_order_relaxed)) == CLOSED)
        return false;
    atomic_fetch_add(&helping, 1);
    read_copy_job(c, &j);
    while (most-- && claim_piece(&j.part, &at, &len)) {
        if (!share_move_vector(j.pid, !j.inward, j.far, j.nfar, j.near, j.nnear, at, len))
            atomic_store(&c->failed, 1);
        share_report_done(c, j.part.number, len);
    }
    atomic_fetch_sub(&helping, 1);
    *got += j.part.got;
    return j.part.turns > 0;
}

static bool share_help_all(unsigned most, uint64_t *got)
{
    unsigned open = atomic_load(&proc.arena->copies_open);
    bool turns = false;
    for (unsigned i = 0; i < SHARED_COPIES; i++)
        if (open >> i & 1)
            turns |= share_help_copy(&proc.arena->copy[i], most, got);
    return turns;
}

void share_help(void)
{
    uint64_t got = 0;
    share_help_all(1, &got); /* one piece: the completion for which the program polls may have arrived then */
    if (got)
        atomic_store_explicit(&by_poller, true, memory_order_relaxed);
}

void share_release_dead(void)
{
    unsigned turn = 0;
    for (unsigned i = 0; i < SHARED_COPIES; i++) {
        struct sh_copy *c = &proc.arena->copy[i];
        unsigned owner = atomic_load(&c->lock.owner);
        uint64_t word = atomic_load(&c->next);
        if (!owner || shlock_owner_alive(owner))
            continue;
        atomic_compare_exchange_strong(&c->next, &word, word | CLOSED);
    }
    while (atomic_load(&helping))
        spin_wait(&turn);
}

static bool has_unclaimed_pieces(void)
{
    unsigned open = atomic_load(&proc.arena->copies_open);
    for (unsigned i = 0; open >> i; i++) {
        const struct sh_copy *c = &proc.arena->copy[i];
        if (open >> i & 1 && share_word_offset(atomic_load(&c->next)) < c->total)
            return true;
    }
    return false;
}

bool share_help_or_sleep(uint64_t due)
{
    static uint64_t until; /* used by the engine thread only */
    bool requested = atomic_load_explicit(&proc.arena->help_requested, memory_order_relaxed) &&
                     atomic_exchange(&proc.arena->help_requested, 0);
    uint64_t now = until || requested ? now_ns() : 0, leave = min_u64(now + ATTEND_LONG, due), got = 0;
    unsigned turn = 0;
    if (!now)
        return false;
    if (requested) /* the copy may have ended, but another one may follow */
        until = now + ATTEND_NS;
    atomic_store(&proc.arena->attentive, 1);
    atomic_store(&by_poller, false);
    do {
        if (share_has_open_copies() && share_help_all(~0u, &got))
            until = now_ns() + ATTEND_NS;
        else
            spin_wait(&turn);
        now = now_ns();
    } while (now < until && now < leave && !atomic_load_explicit(&by_poller, memory_order_relaxed));
    if (now < until && !atomic_load(&by_poller))
        return true;
    atomic_store(&proc.arena->attentive, 0);
    /* The senders of unclaimed pieces rang no doorbell because this thread was polling. */
    until = has_unclaimed_pieces() ? now : 0;
    return until;
}
