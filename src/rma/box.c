/* box.c: a target that waits inside MPI lends a hand with puts and gets of memory that only a system call reaches
 * (cross-memory attach). Each process has a box in the node's memory. An origin writes a request there and polls whether the
 * target takes the request: for a few bytes that is quicker than a system call, and long transfers are shared by two processors. A
 * target that computes or sleeps is not disturbed: the origin withdraws its request and does the work alone, as it does when
 * the box is in use. After a request that was not taken the origin sends requests less and less often.
 *
 * `request` is a number and a phase. Only the holder of `owner` writes a request, under a new number; only the target takes it; and
 * it is withdrawn only before the target has taken it. So the target works on a request either alone or not at all, and the owner goes
 * on when `answered` has the number.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/cpu.h"
#include "obj/context.h"
#include "rma/rma.h"

static COUNTER(
    helped, "rma_target_copies",
    "Puts and gets of this process that the target copied, wholly or in part, while it waited inside MPI.");

#define PATIENCE_NS   1000 /* before a request is withdrawn: two system calls */
#define PAUSE_MAX     255  /* requests that are not sent after one that was not taken ... */
#define PAUSE_WANTED  1    /* ... if the window requests help by an info key */
#define LOOKS_A_CLOCK 32
#define LOOKS_A_YIELD 4096

enum phase { NONE, REQUESTED, TAKEN, PHASES = 4 };
enum wish { WISH_PUT, WISH_GET, WISH_SHARE };

struct shared_work {
    uint32_t rank; /* of the origin, in the job */
    uint32_t put;
    struct net_piece piece[BOX_PIECES]; /* as the origin sees them */
};

#define ASK_BYTES    (7 * CACHE_LINE - 16)
#define ANSWER_BYTES (7 * CACHE_LINE - 16)

#define SHORT_MAX (ASK_BYTES - 16) /* a put that fits */

struct box {
    _Alignas(CACHE_LINE) _Atomic uint32_t owner;
    _Alignas(CACHE_LINE) _Atomic uint64_t request; /* number * PHASES + phase */
    uint32_t wish, count;
    union {
        char records[ASK_BYTES];
        struct shared_work work;
    } ask;
    _Alignas(CACHE_LINE) _Atomic uint64_t answered; /* the number */
    uint64_t failed;                                /* shared work: the target could not do its part */
    char data[ANSWER_BYTES];
    _Alignas(CACHE_LINE) _Atomic uint64_t next; /* shared work: the next piece that nobody does */
};

/* The box lies where a directory has entries of communicators that are never windows. */
_Static_assert(sizeof(struct box) <= CONTEXT_IDS_RESERVED * sizeof(struct win_entry), "a box fits");

/* Before the bytes of each put. */
struct record {
    uint64_t remote;
    uint32_t length;
};

struct box *box_from_directory(struct win_entry *directory)
{
    return (struct box *)(void *)directory;
}

/* ---- the target ---- */

static void execute_puts(const struct box *b)
{
    size_t at = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        struct record r;
        CHECK(at + sizeof(r) <= ASK_BYTES, "a put in a box is longer than the box");
        memcpy(&r, b->ask.records + at, sizeof(r));
        at += sizeof(r);
        CHECK(r.length <= ASK_BYTES - at, "a put in a box is longer than the box");
        memcpy((void *)(uintptr_t)r.remote, b->ask.records + at, r.length);
        at += r.length;
    }
}

static void execute_gets(struct box *b)
{
    size_t used = 0;
    CHECK(b->count <= ASK_BYTES / sizeof(struct record), "gets in a box are more than it holds");
    for (uint32_t i = 0; i < b->count; i++) {
        struct record r;
        memcpy(&r, b->ask.records + i * sizeof(r), sizeof(r));
        CHECK(r.length <= ANSWER_BYTES - used, "a get from a box is longer than the box");
        memcpy(b->data + used, (const void *)(uintptr_t)r.remote, r.length);
        used += r.length;
    }
}

/* Moves pieces of the origin's operation until none is left, sharing the work with the origin. Seen from here a put is a read. */
static void execute_shared_work(struct net *net, struct box *b)
{
    const struct shared_work *work = &b->ask.work;
    struct peer *origin;
    uint64_t k;
    b->failed = net_peer(net, work->rank, &origin) != 0 || !origin->ops->move;
    while (!b->failed && (k = atomic_fetch_add(&b->next, 1)) < b->count) {
        CHECK(k < BOX_PIECES, "shared work has more pieces than a box holds");
        const struct net_piece *theirs = &work->piece[k];
        const struct net_piece mine = {.local = (void *)(uintptr_t)theirs->remote,
                                       .remote = (uintptr_t)theirs->local,
                                       .length = theirs->length};
        b->failed = origin->ops->move(origin, !work->put, &mine, 1) != 0;
    }
}

static int box_serve_request(struct net *net, struct box *b)
{
    uint64_t request = atomic_load_explicit(&b->request, memory_order_relaxed);
    if (likely(request % PHASES != REQUESTED) ||
        !atomic_compare_exchange_strong(&b->request, &request, request - REQUESTED + TAKEN))
        return 0;
    if (b->wish == WISH_PUT)
        execute_puts(b);
    else if (b->wish == WISH_GET)
        execute_gets(b);
    else
        execute_shared_work(net, b);
    atomic_store_explicit(&b->answered, request / PHASES, memory_order_release);
    return 1;
}

static int box_progress(struct net_hook *hook)
{
    struct rma *r = container_of(hook, struct rma, box_hook);
    return box_serve_request(r->proc->net, box_from_directory(r->directory.mine));
}

/* No timer of its own: a sleeping process is not asked to share work. */
static uint64_t box_next_deadline(struct net_hook *hook, uint64_t now)
{
    (void)hook, (void)now;
    return NET_FOREVER;
}

void box_open(struct rma *r)
{
    if (r->box_hook.progress || !r->directory.node)
        return;
    r->box_hook = (struct net_hook){.progress = box_progress, .rests = box_next_deadline};
    list_append(&r->proc->net->hooks, &r->box_hook.link);
}

void box_close(struct rma *r)
{
    if (r->box_hook.progress)
        list_remove(&r->box_hook.link);
}

/* ---- the origin ---- */

/* In a job that continues after deaths the box is not used: a target that died in the middle would never answer. */
bool box_reaches(const struct win_peer *p)
{
    const struct net *net = p->win->proc->net;
    const int help = p->win->help;
    return p->box && help != HELP_OFF && !net->lost && (help == HELP_ON || !net->oversubscribed);
}

static bool box_begin_request(struct win_peer *p)
{
    if (!box_reaches(p))
        return false;
    if (p->box_pause > 0) {
        p->box_pause--;
        return false;
    }
    if (atomic_load_explicit(&p->bell->sleepers, memory_order_relaxed) != 0)
        return false;
    uint32_t nobody = 0;
    return atomic_compare_exchange_strong(&p->box->owner, &nobody, 1);
}

static void box_end(struct win_peer *p)
{
    atomic_store_explicit(&p->box->owner, 0, memory_order_release);
}

static uint64_t box_post_request(struct box *b, enum wish wish, uint32_t count)
{
    const uint64_t number = atomic_load_explicit(&b->request, memory_order_relaxed) / PHASES + 1;
    b->wish = wish;
    b->count = count;
    atomic_store_explicit(&b->request, number * PHASES + REQUESTED, memory_order_release);
    return number;
}

static bool is_request_answered(const struct box *b, uint64_t number)
{
    return atomic_load_explicit(&b->answered, memory_order_acquire) == number;
}

/* Waits for a target that has taken the request; its work depends on no other process. */
static void wait_for_target_work(const struct box *b, uint64_t number)
{
    for (unsigned looks = 1; !is_request_answered(b, number); looks++)
        if (looks % LOOKS_A_YIELD == 0)
            sched_yield();
}

/* Returns true if the target has done the work, false if the request was withdrawn before the target saw it. */
static bool box_finish_or_withdraw(struct win_peer *p, uint64_t number)
{
    struct box *b = p->box;
    uint64_t request = number * PHASES + REQUESTED;
    if (!is_request_answered(b, number) &&
        atomic_compare_exchange_strong(&b->request, &request, number * PHASES + NONE)) {
        const int most = p->win->help == HELP_ON ? PAUSE_WANTED : PAUSE_MAX;
        p->box_refusals = (uint8_t)MIN(2 * p->box_refusals + 1, most);
        p->box_pause = p->box_refusals;
        return false;
    }
    wait_for_target_work(b, number);
    p->box_refusals = 0;
    return true;
}

/* Waits for the answer and serves requests meanwhile: two processes that wait for each other must serve each other. */
static bool wait_for_answer(struct win_peer *p, uint64_t number)
{
    struct rma *r = p->win->proc->rma;
    struct box *mine = box_from_directory(r->directory.mine);
    uint64_t since = 0;
    for (unsigned looks = 1; !is_request_answered(p->box, number); looks++) {
        box_serve_request(r->proc->net, mine);
        if (looks % LOOKS_A_CLOCK != 0)
            continue;
        const uint64_t now = clock_ns();
        since = since ? since : now;
        if (now - since >= PATIENCE_NS)
            break;
    }
    return box_finish_or_withdraw(p, number);
}

/* Fills the box with as many pieces as fit; returns the number. */
static size_t box_fill(struct box *b, bool put, const struct net_piece *pieces, size_t count)
{
    size_t at = 0, back = 0, n = 0;
    for (; n < count; n++) {
        const struct record r = {.remote = pieces[n].remote, .length = (uint32_t)pieces[n].length};
        const size_t data = put ? pieces[n].length : 0, answer = put ? 0 : pieces[n].length;
        if (at + sizeof(r) + data > ASK_BYTES || back + answer > ANSWER_BYTES)
            break;
        memcpy(b->ask.records + at, &r, sizeof(r));
        memcpy(b->ask.records + at + sizeof(r), pieces[n].local, data);
        at += sizeof(r) + data;
        back += answer;
    }
    return n;
}

size_t box_move(struct win_peer *p, bool put, const struct net_piece *pieces, size_t count)
{
    struct box *b = p->box;
    size_t done = 0, n;
    if (pieces[0].length > SHORT_MAX || !box_begin_request(p))
        return 0;
    while (done < count && (n = box_fill(b, put, pieces + done, count - done)) > 0 &&
           wait_for_answer(p, box_post_request(b, put ? WISH_PUT : WISH_GET, (uint32_t)n))) {
        const char *data = b->data;
        for (size_t i = done; i < done + n && !put; data += pieces[i++].length)
            memcpy(pieces[i].local, data, pieces[i].length);
        done += n;
    }
    box_end(p);
    counter_add(&helped, done);
    return done;
}

static int move_pieces_singly(struct win_peer *p, bool put, const struct net_piece *pieces, size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = p->peer->ops->move(p->peer, put, &pieces[i], 1);
    return rc;
}

int box_share(struct win_peer *p, bool put, const struct net_piece *pieces, size_t count)
{
    struct box *b = p->box;
    uint64_t k;
    int rc = 0;
    if (count < 2 || count > BOX_PIECES || !box_begin_request(p))
        return move_pieces_singly(p, put, pieces, count);
    b->ask.work.rank = p->win->proc->net->rank;
    b->ask.work.put = put;
    memcpy(b->ask.work.piece, pieces, count * sizeof(*pieces));
    atomic_store_explicit(&b->next, 0, memory_order_relaxed);
    const uint64_t number = box_post_request(b, WISH_SHARE, (uint32_t)count);
    while (rc == 0 && (k = atomic_fetch_add(&b->next, 1)) < count)
        rc = p->peer->ops->move(p->peer, put, &pieces[k], 1);
    const bool shared = box_finish_or_withdraw(p, number), failed = shared && b->failed;
    box_end(p);
    counter_add(&helped, shared && !failed);
    return failed ? move_pieces_singly(p, put, pieces, count) : rc;
}
