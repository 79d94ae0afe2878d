/* mailbox.c: a target that waits inside MPI executes puts and gets of memory that otherwise only a system
 * call reaches (cross-memory attach). Each process has a mailbox in the node's memory. An origin writes a
 * request there and polls whether the target takes the request: for a few bytes the request takes less time
 * than a system call, and two processors share long transfers. If the target computes or sleeps, or the
 * mailbox is in use, the origin withdraws its request and copies alone. After a request that was not taken
 * the origin sends requests less and less often.
 *
 * `request` is a number and a phase. Only the holder of `owner` writes a request, under a new number; only
 * the target takes a request; and the holder withdraws a request only before the target has taken it. So a
 * request is either executed by the target alone or not at all, and the holder continues when `answered` has
 * the number.
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

#define PATIENCE_NS          1000 /* time before a request is withdrawn: that of two system calls */
#define PAUSE_MAX            255  /* limit of operations without a request after an untaken request */
#define PAUSE_WANTED         1    /* replaces PAUSE_MAX if the info key fishplate_help requests help */
#define POLLS_PER_CLOCK_READ 32
#define POLLS_PER_YIELD      4096

enum phase { NONE, REQUESTED, TAKEN, PHASES = 4 };
enum mailbox_request { REQUEST_PUT, REQUEST_GET, REQUEST_SHARE };

struct shared_work {
    uint32_t rank; /* job rank of the origin */
    uint32_t put;
    struct net_piece piece[MAILBOX_PIECES]; /* `local` is the origin's memory, `remote` the target's */
};

#define REQUEST_BYTES (7 * CACHE_LINE - 16)
#define ANSWER_BYTES  (7 * CACHE_LINE - 16)

#define SHORT_MAX (REQUEST_BYTES - 16) /* bytes of the largest put that fits */

struct mailbox {
    _Alignas(CACHE_LINE) _Atomic uint32_t owner;
    _Alignas(CACHE_LINE) _Atomic uint64_t request; /* number * PHASES + phase */
    uint32_t kind, count;
    union {
        char records[REQUEST_BYTES];
        struct shared_work work;
    } request_data;
    /* Number of the last request that the target has executed. */
    _Alignas(CACHE_LINE) _Atomic uint64_t answered;
    uint64_t failed; /* REQUEST_SHARE: the target could not copy a piece */
    char data[ANSWER_BYTES];
    /* REQUEST_SHARE: the next piece that neither side has taken. */
    _Alignas(CACHE_LINE) _Atomic uint64_t next;
};

/* The mailbox occupies the directory entries of the reserved context ids, which never belong to a window. */
_Static_assert(sizeof(struct mailbox) <= CONTEXT_IDS_RESERVED * sizeof(struct win_entry), "a mailbox fits");

/* Header of a put, followed by the put's bytes; or a complete get. */
struct record {
    uint64_t remote;
    uint32_t length;
};

struct mailbox *mailbox_from_directory(struct win_entry *directory)
{
    return (struct mailbox *)(void *)directory;
}

/* ---- the target ---- */

static void execute_puts(const struct mailbox *b)
{
    size_t at = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        struct record r;
        CHECK(at + sizeof(r) <= REQUEST_BYTES, "a put in a mailbox is longer than the mailbox");
        memcpy(&r, b->request_data.records + at, sizeof(r));
        at += sizeof(r);
        CHECK(r.length <= REQUEST_BYTES - at, "a put in a mailbox is longer than the mailbox");
        memcpy((void *)(uintptr_t)r.remote, b->request_data.records + at, r.length);
        at += r.length;
    }
}

static void execute_gets(struct mailbox *b)
{
    size_t used = 0;
    CHECK(b->count <= REQUEST_BYTES / sizeof(struct record), "gets in a mailbox are more than it holds");
    for (uint32_t i = 0; i < b->count; i++) {
        struct record r;
        memcpy(&r, b->request_data.records + i * sizeof(r), sizeof(r));
        CHECK(r.length <= ANSWER_BYTES - used, "a get from a mailbox is longer than the mailbox");
        memcpy(b->data + used, (const void *)(uintptr_t)r.remote, r.length);
        used += r.length;
    }
}

/* Copies pieces of the origin's operation until none is left; the origin copies others meanwhile. The target
 * executes a put as a read of the origin's memory. */
static void execute_shared_work(struct net *net, struct mailbox *b)
{
    const struct shared_work *work = &b->request_data.work;
    struct peer *origin;
    uint64_t k;
    b->failed = net_peer(net, work->rank, &origin) != 0 || !origin->ops->move;
    while (!b->failed && (k = atomic_fetch_add(&b->next, 1)) < b->count) {
        CHECK(k < MAILBOX_PIECES, "shared work has more pieces than a mailbox holds");
        const struct net_piece *theirs = &work->piece[k];
        const struct net_piece mine = {.local = (void *)(uintptr_t)theirs->remote,
                                       .remote = (uintptr_t)theirs->local,
                                       .length = theirs->length};
        b->failed = origin->ops->move(origin, !work->put, &mine, 1) != 0;
    }
}

static int mailbox_serve_request(struct net *net, struct mailbox *b)
{
    uint64_t request = atomic_load_explicit(&b->request, memory_order_relaxed);
    if (likely(request % PHASES != REQUESTED) ||
        !atomic_compare_exchange_strong(&b->request, &request, request - REQUESTED + TAKEN))
        return 0;
    if (b->kind == REQUEST_PUT)
        execute_puts(b);
    else if (b->kind == REQUEST_GET)
        execute_gets(b);
    else
        execute_shared_work(net, b);
    atomic_store_explicit(&b->answered, request / PHASES, memory_order_release);
    return 1;
}

static int mailbox_progress(struct net_hook *hook)
{
    struct rma *r = container_of(hook, struct rma, mailbox_hook);
    return mailbox_serve_request(r->proc->net, mailbox_from_directory(r->directory.mine));
}

/* The hook needs no wake-up: origins send no requests to a sleeping process. */
static uint64_t mailbox_next_deadline(struct net_hook *hook, uint64_t now)
{
    (void)hook, (void)now;
    return NET_FOREVER;
}

void mailbox_open(struct rma *r)
{
    if (r->mailbox_hook.progress || !r->directory.node)
        return;
    r->mailbox_hook = (struct net_hook){.progress = mailbox_progress, .rests = mailbox_next_deadline};
    list_append(&r->proc->net->hooks, &r->mailbox_hook.link);
}

void mailbox_close(struct rma *r)
{
    if (r->mailbox_hook.progress)
        list_remove(&r->mailbox_hook.link);
}

/* ---- the origin ---- */

/* A job that continues after deaths uses no mailboxes: a target that dies while it executes a request never
 * answers. */
bool mailbox_is_usable(const struct win_peer *p)
{
    const struct net *net = p->win->proc->net;
    const int help = p->win->help;
    return p->mailbox && help != HELP_OFF && !net->lost && (help == HELP_ON || !net->oversubscribed);
}

static bool mailbox_begin_request(struct win_peer *p)
{
    if (!mailbox_is_usable(p))
        return false;
    if (p->mailbox_pause > 0) {
        p->mailbox_pause--;
        return false;
    }
    if (atomic_load_explicit(&p->bell->sleepers, memory_order_relaxed) != 0)
        return false;
    uint32_t unowned = 0;
    return atomic_compare_exchange_strong(&p->mailbox->owner, &unowned, 1);
}

static void mailbox_release(struct win_peer *p)
{
    atomic_store_explicit(&p->mailbox->owner, 0, memory_order_release);
}

static uint64_t mailbox_post_request(struct mailbox *b, enum mailbox_request kind, uint32_t count)
{
    const uint64_t number = atomic_load_explicit(&b->request, memory_order_relaxed) / PHASES + 1;
    b->kind = kind;
    b->count = count;
    atomic_store_explicit(&b->request, number * PHASES + REQUESTED, memory_order_release);
    return number;
}

static bool is_request_answered(const struct mailbox *b, uint64_t number)
{
    return atomic_load_explicit(&b->answered, memory_order_acquire) == number;
}

/* Waits for a target that has taken the request; its copies depend on no other process. */
static void wait_for_target_work(const struct mailbox *b, uint64_t number)
{
    for (unsigned polls = 1; !is_request_answered(b, number); polls++)
        if (polls % POLLS_PER_YIELD == 0)
            sched_yield();
}

/* Returns true if the target has done the work, false if the request was withdrawn before the target saw
 * it. */
static bool mailbox_finish_or_withdraw(struct win_peer *p, uint64_t number)
{
    struct mailbox *b = p->mailbox;
    uint64_t request = number * PHASES + REQUESTED;
    if (!is_request_answered(b, number) &&
        atomic_compare_exchange_strong(&b->request, &request, number * PHASES + NONE)) {
        const int most = p->win->help == HELP_ON ? PAUSE_WANTED : PAUSE_MAX;
        p->mailbox_refusals = (uint8_t)MIN(2 * p->mailbox_refusals + 1, most);
        p->mailbox_pause = p->mailbox_refusals;
        return false;
    }
    wait_for_target_work(b, number);
    p->mailbox_refusals = 0;
    return true;
}

/* Waits for the answer and serves requests meanwhile: two processes that wait for each other must serve each
 * other. */
static bool wait_for_answer(struct win_peer *p, uint64_t number)
{
    struct rma *r = p->win->proc->rma;
    struct mailbox *mine = mailbox_from_directory(r->directory.mine);
    uint64_t since = 0;
    for (unsigned polls = 1; !is_request_answered(p->mailbox, number); polls++) {
        mailbox_serve_request(r->proc->net, mine);
        if (polls % POLLS_PER_CLOCK_READ != 0)
            continue;
        const uint64_t now = clock_ns();
        since = since ? since : now;
        if (now - since >= PATIENCE_NS)
            break;
    }
    return mailbox_finish_or_withdraw(p, number);
}

/* Fills the mailbox with as many pieces as fit; returns their number. */
static size_t mailbox_fill(struct mailbox *b, bool put, const struct net_piece *pieces, size_t count)
{
    size_t at = 0, back = 0, n = 0;
    for (; n < count; n++) {
        const struct record r = {.remote = pieces[n].remote, .length = (uint32_t)pieces[n].length};
        const size_t data = put ? pieces[n].length : 0, answer = put ? 0 : pieces[n].length;
        if (at + sizeof(r) + data > REQUEST_BYTES || back + answer > ANSWER_BYTES)
            break;
        memcpy(b->request_data.records + at, &r, sizeof(r));
        memcpy(b->request_data.records + at + sizeof(r), pieces[n].local, data);
        at += sizeof(r) + data;
        back += answer;
    }
    return n;
}

size_t mailbox_move(struct win_peer *p, bool put, const struct net_piece *pieces, size_t count)
{
    struct mailbox *b = p->mailbox;
    size_t done = 0, n;
    if (pieces[0].length > SHORT_MAX || !mailbox_begin_request(p))
        return 0;
    while (done < count && (n = mailbox_fill(b, put, pieces + done, count - done)) > 0 &&
           wait_for_answer(p, mailbox_post_request(b, put ? REQUEST_PUT : REQUEST_GET, (uint32_t)n))) {
        const char *data = b->data;
        for (size_t i = done; i < done + n && !put; data += pieces[i++].length)
            memcpy(pieces[i].local, data, pieces[i].length);
        done += n;
    }
    mailbox_release(p);
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

int mailbox_share(struct win_peer *p, bool put, const struct net_piece *pieces, size_t count)
{
    struct mailbox *b = p->mailbox;
    uint64_t k;
    int rc = 0;
    if (count < 2 || count > MAILBOX_PIECES || !mailbox_begin_request(p))
        return move_pieces_singly(p, put, pieces, count);
    b->request_data.work.rank = p->win->proc->net->rank;
    b->request_data.work.put = put;
    memcpy(b->request_data.work.piece, pieces, count * sizeof(*pieces));
    atomic_store_explicit(&b->next, 0, memory_order_relaxed);
    const uint64_t number = mailbox_post_request(b, REQUEST_SHARE, (uint32_t)count);
    while (rc == 0 && (k = atomic_fetch_add(&b->next, 1)) < count)
        rc = p->peer->ops->move(p->peer, put, &pieces[k], 1);
    const bool shared = mailbox_finish_or_withdraw(p, number), failed = shared && b->failed;
    mailbox_release(p);
    counter_add(&helped, shared && !failed);
    return failed ? move_pieces_singly(p, put, pieces, count) : rc;
}
