/* test_suspended.c: one message and one receive while processes die: every order of events, for eager messages and for every
 * rendezvous protocol, over the transport of fake.h. The receive is posted, matches, transfers, is suspended by the death of
 * another process, resumed by an acknowledgement or by its message, cancelled, freed, revoked; the sender may die at any step.
 *
 * The search runs the real engine: each order is replayed from the start, and an order that leads to a state that was seen
 * before is not continued. A state is the two requests, the frames and transfers under way, the data that has arrived, and
 * the events that have happened (state_key).
 *
 * After each step: a receive that is complete without an error has all its data; one that is complete with
 * MPIX_ERR_PROC_FAILED_PENDING is posted, is in the state RECV_SUSPENDED, and an unacknowledged death exists. When nothing is
 * left to do, both requests have the result that the events call for, and nothing is registered.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/tunable.h"
#include "fake.h"
#include "net/lost.h"
#include "p2p/faulty.h"

enum { SIZE_MAX_ = 600, SENDER = 1, RECEIVER = 0, ABSENT = 7, DEPTH = 120, SEEN = 1 << 20 };

enum action {
    POST,
    SEND,
    OTHER_DIES,       /* a process that is not part of this message */
    ACKNOWLEDGE,      /* MPIX_Comm_ack_failed */
    ANOTHER_DIES,     /* after the acknowledgement */
    ACKNOWLEDGE_MORE, /* ... and that one is acknowledged too */
    CANCEL,
    FREE, /* MPI_Request_free of the receive */
    REVOKE,
    SENDER_DIES,
    ONCE, /* those before happen once */
    RECEIVER_PROGRESS = ONCE,
    SENDER_PROGRESS,
    HOLD_ENDS,
    MOVE_PUT,
    MOVE_GET,
    ACTIONS
};
static const char *const action_names[ACTIONS] = {
    "post",      "send",      "other dies", "acknowledge", "another dies", "acknowledge more",
    "cancel",    "free",      "revoke",     "sender dies", "receiver",     "sender",
    "hold ends", "put moves", "get moves"};

/* What one search explores. */
struct setup {
    const char *protocol;
    size_t message, room;
    bool wildcard, synchronous;
    uint32_t without; /* events that do not happen */
};

static struct world {
    struct setup setup;
    uint32_t done; /* events that have happened */
    int ndead, nacked;
    bool revoked, sender_dead;
    struct request *send, *receive; /* NULL: not started, or complete and freed */
    int send_error, receive_error;
    bool send_over, receive_over, receive_cancelled, receive_is_free;
    unsigned char data[SIZE_MAX_], buf[SIZE_MAX_ + 8], kept[SIZE_MAX_ + 8];
} w;

static uint64_t *seen;
static uint64_t nstates, nsteps;
static uint64_t nsuspended; /* states in which the receive is suspended */
static enum action path[DEPTH];
static int depth;

static int suspended_judge(void *arg, struct envelope env)
{
    (void)arg;
    if (w.revoked)
        return MPIX_ERR_REVOKED;
    if (env.source == MPI_ANY_SOURCE)
        return w.nacked < w.ndead ? MPIX_ERR_PROC_FAILED_PENDING : 0;
    return w.sender_dead ? MPIX_ERR_PROC_FAILED : 0;
}

static struct fake_rank *suspended_receiver(void)
{
    return &fake_ranks[RECEIVER];
}

static void world_open(const struct setup *s)
{
    fake_always = true;
    fake_open((struct fake_rules){.caps = {.put = true,
                                           .get = true,
                                           .put_ordered = true,
                                           .last_byte_last = true,
                                           .latency_ns = 1000000000}});
    w = (struct world){.setup = *s};
    for (size_t i = 0; i < s->message; i++)
        w.data[i] = (unsigned char)(1 + i * 7 % 251);
    memset(w.buf, 0xdd, sizeof(w.buf));
    for (int i = 0; i < RANKS; i++)
        fake_ranks[i].p2p->dice = 1;
    p2p_on_fault(suspended_receiver()->p2p, suspended_judge, NULL, NULL);
}

static void drop_all(struct list *queue, bool fail)
{
    while (!list_empty(queue)) {
        struct fake_item *i = list_entry(queue->next, struct fake_item, link);
        struct net_op *op = i->op;
        list_remove(&i->link);
        free(i);
        if (op && fail)
            op->done(op, MPIX_ERR_PROC_FAILED);
    }
}

static void world_close(void)
{
    for (int i = 0; i < RANKS; i++)
        for (int k = 0; k < RANKS; k++)
            drop_all(&fake_ranks[i].out[k], false);
    for (int i = 0; i < RANKS; i++) {
        struct fake_rank *r = &fake_ranks[i];
        drop_all(&r->gets, false);
        p2p_close(r->p2p);
        paces_free(&r->net.paces);
    }
    fake_always = false;
}

/* ---- actions ---- */

static void suspended_post(void)
{
    struct envelope env = {.context = 2, .source = w.setup.wildcard ? MPI_ANY_SOURCE : SENDER, .tag = 5};
    EXPECT_EQ(p2p_irecv(suspended_receiver()->p2p, w.buf, (MPI_Count)w.setup.room, dtype_from(MPI_BYTE), env,
                        &w.receive),
              0);
}

static void start_send(void)
{
    struct fake_rank *me = &fake_ranks[SENDER];
    struct envelope env = {.context = 2, .source = SENDER, .tag = 5};
    EXPECT_EQ(p2p_isend(me->p2p, w.data, (MPI_Count)w.setup.message, dtype_from(MPI_BYTE),
                        &me->peers[RECEIVER], env, w.setup.synchronous ? SEND_SYNCHRONOUS : SEND_STANDARD,
                        &w.send),
              0);
}

/* A send waits for an offer for a time that the clock limits: here until HOLD_ENDS. */
static bool is_held(void)
{
    return w.send && !w.send->shared && p2p_request(w.send)->state == STATE_SEND_HELD &&
           p2p_request(w.send)->hold.since != 0;
}

static void one_more_dies(uint32_t number, struct peer *peer)
{
    w.ndead++;
    suspended_receiver()->net.died(suspended_receiver()->net.deliver_ctx, number, peer);
}

/* The transport ends what is under way; nothing more comes from the sender. */
static void sender_dies(void)
{
    struct fake_rank *dead = &fake_ranks[SENDER];
    struct peer *peer = &suspended_receiver()->peers[SENDER];
    w.sender_dead = true;
    peer->ops = &lost_transport;
    peer->eager_max = UINT64_MAX - 1;
    peer->eager_below = UINT64_MAX;
    drop_all(&dead->out[RECEIVER], false);
    drop_all(&dead->gets, false);
    drop_all(&suspended_receiver()->out[SENDER], true);
    drop_all(&suspended_receiver()->gets, true);
    one_more_dies(SENDER, peer);
}

static void suspended_acknowledge(void)
{
    w.nacked = w.ndead;
    p2p_recheck_faults(suspended_receiver()->p2p);
}

static void free_receive(void)
{
    if (p2p_is_suspended(w.receive))
        p2p_free_suspended(w.receive);
    else
        w.receive->freed = true;
    w.receive = NULL;
    w.receive_is_free = true;
}

static struct fake_item *suspended_movable(struct list *queue)
{
    list_foreach(pos, queue)
    {
        struct fake_item *i = list_entry(pos, struct fake_item, link);
        if (i->op && i->phase < 2)
            return i;
    }
    return NULL;
}

static struct fake_item *put_under_way(void)
{
    struct fake_item *i = suspended_movable(&fake_ranks[SENDER].out[RECEIVER]);
    return i ? i : suspended_movable(&suspended_receiver()->out[SENDER]);
}

static bool may_happen(enum action a)
{
    if (a < ONCE && ((w.done | w.setup.without) >> a & 1))
        return false;
    switch (a) {
    case SEND:
    case POST:
        return !w.revoked && (a != SEND || !w.sender_dead);
    case ACKNOWLEDGE:
    case ACKNOWLEDGE_MORE:
        return w.nacked < w.ndead && (a == ACKNOWLEDGE || w.done >> ACKNOWLEDGE & 1);
    case ANOTHER_DIES:
        return w.done >> ACKNOWLEDGE & 1;
    case CANCEL:
    case FREE:
        return w.receive != NULL;
    case REVOKE:
        return w.done >> POST & 1;
    case SENDER_DIES:
        return w.done >> SEND & 1;
    case SENDER_PROGRESS:
        return !w.sender_dead;
    case HOLD_ENDS:
        return is_held() && !w.sender_dead;
    case MOVE_PUT:
        return put_under_way() != NULL;
    case MOVE_GET:
        return suspended_movable(&suspended_receiver()->gets) != NULL;
    default:
        return true;
    }
}

static void suspended_act(enum action a)
{
    w.done |= a < ONCE ? 1u << a : 0;
    switch (a) {
    case POST:
        suspended_post();
        break;
    case SEND:
        start_send();
        break;
    case OTHER_DIES:
    case ANOTHER_DIES:
        one_more_dies(ABSENT + (uint32_t)a, NULL);
        break;
    case ACKNOWLEDGE:
    case ACKNOWLEDGE_MORE:
        suspended_acknowledge();
        break;
    case CANCEL:
        EXPECT_EQ(p2p_cancel(suspended_receiver()->p2p, w.receive), 0);
        break;
    case FREE:
        free_receive();
        break;
    case REVOKE:
        w.revoked = true;
        p2p_recheck_faults(suspended_receiver()->p2p);
        break;
    case SENDER_DIES:
        sender_dies();
        break;
    case RECEIVER_PROGRESS:
        net_progress(&suspended_receiver()->net);
        break;
    case SENDER_PROGRESS:
        net_progress(&fake_ranks[SENDER].net);
        break;
    case HOLD_ENDS:
        p2p_request(w.send)->hold.since = 0;
        break;
    case MOVE_PUT:
        fake_move(put_under_way());
        break;
    default:
        fake_move(suspended_movable(&suspended_receiver()->gets));
    }
}

/* ---- what must hold ---- */

static bool has_data(void)
{
    return memcmp(w.buf, w.data, MIN(w.setup.message, w.setup.room)) == 0;
}

static bool suspended_untouched(void)
{
    for (size_t i = 0; i < sizeof(w.buf); i++)
        if (w.buf[i] != 0xdd)
            return false;
    return true;
}

static void receive_ended(void)
{
    const int full = w.setup.message > w.setup.room ? MPI_ERR_TRUNCATE : 0;
    w.receive_over = true;
    w.receive_error = w.receive->error;
    w.receive_cancelled = w.receive->cancelled;
    if (w.receive_cancelled) {
        EXPECT_EQ(w.receive_error, 0);
        EXPECT(w.done >> CANCEL & 1);
        EXPECT(suspended_untouched());
    } else if (w.receive_error == full) {
        EXPECT(has_data());
        EXPECT_EQ(w.receive->bytes, MIN(w.setup.message, w.setup.room));
        EXPECT_EQ(w.receive->source, SENDER);
    } else {
        EXPECT_EQ(w.receive_error, w.revoked && !w.sender_dead ? MPIX_ERR_REVOKED : w.receive_error);
        EXPECT(w.receive_error == MPIX_ERR_REVOKED
                   ? w.revoked
                   : w.receive_error == MPIX_ERR_PROC_FAILED && w.sender_dead);
    }
    request_free(w.receive);
    w.receive = NULL;
    memcpy(w.kept, w.buf, sizeof(w.buf)); /* the program's again */
}

static void suspended_check(void)
{
    if (w.receive) {
        const struct p2p_request *r = p2p_request(w.receive);
        const bool pending = w.receive->complete && w.receive->error == MPIX_ERR_PROC_FAILED_PENDING;
        EXPECT_EQ(pending, r->state == STATE_RECV_SUSPENDED);
        EXPECT_EQ(pending, p2p_is_suspended(w.receive));
        EXPECT_EQ(w.receive->complete != 0, pending || r->state == STATE_DONE);
        if (pending) {
            EXPECT(r->match.posted && w.setup.wildcard && w.nacked < w.ndead && !w.revoked);
            nsuspended++;
        } else if (r->match.posted && w.setup.wildcard) {
            EXPECT(w.nacked == w.ndead && !w.revoked); /* a posted wildcard receive would be suspended */
        }
        if (w.receive->complete && !pending)
            receive_ended();
    }
    if (w.receive_over)
        EXPECT(memcmp(w.kept, w.buf, sizeof(w.buf)) == 0);
    if (w.send && !w.sender_dead && w.send->complete) {
        w.send_over = true;
        w.send_error = w.send->error;
        request_free(w.send);
        w.send = NULL;
    }
    for (size_t i = w.setup.room; i < sizeof(w.buf); i++)
        EXPECT_EQ(w.buf[i], 0xdd);
}

/* Checks the end: everything that can happen has happened. */
static void check_end(void)
{
    const bool posted = w.done >> POST & 1, sent = w.done >> SEND & 1;
    const bool taken_back = w.receive_cancelled || w.receive_is_free;
    if (posted && sent && !w.sender_dead && !taken_back && !w.revoked)
        EXPECT(w.receive_over);
    if (posted && (w.revoked || (w.sender_dead && !w.setup.wildcard)) && !taken_back)
        EXPECT(w.receive_over);
    if (sent && !w.sender_dead && w.receive_over && !taken_back)
        EXPECT(w.send_over);
    if (!w.receive && !w.receive_is_free)
        EXPECT_EQ(suspended_receiver()->registered, 0);
    EXPECT(list_empty(&suspended_receiver()->net.stalled));
}

/* ---- the search ---- */

static void suspended_mix(uint64_t *key, uint64_t value)
{
    *key = (*key ^ value) * 0x9e3779b97f4a7c15u;
    *key ^= *key >> 29;
}

static void mix_request(uint64_t *key, const struct request *base)
{
    suspended_mix(key, base != NULL);
    if (!base || base->shared)
        return;
    const struct p2p_request *r = (const struct p2p_request *)base;
    suspended_mix(key, r->state | (uint64_t)(base->complete != 0) << 8 | (uint64_t)r->match.posted << 9 |
                           (uint64_t)r->registered << 10 | (uint64_t)base->freed << 11 |
                           (uint64_t)(uint32_t)base->error << 32);
    if (request_is_in_state(r, STATE_BIT(SEND_HELD)))
        suspended_mix(key, r->hold.since != 0);
    if (request_is_in_state(r, STATE_BIT(SEND_PIECES) | STATE_BIT(RECV_PIECES)))
        suspended_mix(key, r->pieces.moved);
}

static uint64_t state_key(void)
{
    uint64_t key = 1;
    suspended_mix(&key, w.done | (uint64_t)w.ndead << 32 | (uint64_t)w.nacked << 40 |
                            (uint64_t)w.send_over << 48 | (uint64_t)w.receive_over << 49 |
                            (uint64_t)w.receive_cancelled << 50);
    mix_request(&key, w.send);
    mix_request(&key, w.receive);
    for (size_t i = 0; i < sizeof(w.buf); i++)
        suspended_mix(&key, w.buf[i]);
    for (int i = 0; i < RANKS; i++) {
        struct fake_rank *r = &fake_ranks[i];
        struct list *queues[] = {&r->gets, &r->out[!i]};
        suspended_mix(&key, (uint64_t)r->registered << 32 | (uint64_t)p2p_posted_length(r->p2p) << 16 |
                                p2p_unexpected_length(r->p2p) << 1 | list_empty(&r->net.stalled));
        for (size_t q = 0; q < COUNT_OF(queues); q++) {
            suspended_mix(&key, 77);
            list_foreach(pos, queues[q])
            {
                const struct fake_item *f = list_entry(pos, struct fake_item, link);
                suspended_mix(&key, f->op ? 256u + (unsigned)f->phase : f->header.kind);
                suspended_mix(&key, f->op ? 0 : (uint64_t)f->header.flags << 32 | f->header.aux);
                suspended_mix(&key, f->len);
            }
        }
    }
    return key ? key : 1;
}

/* False: it was seen before. */
static bool suspended_remember(uint64_t key)
{
    for (uint64_t i = key;; i++) {
        uint64_t *place = &seen[i % SEEN];
        if (*place == key)
            return false;
        if (*place == 0) {
            *place = key;
            nstates++;
            return true;
        }
    }
}

static void test_replay(const struct setup *s)
{
    world_open(s);
    for (int i = 0; i < depth; i++) {
        suspended_act(path[i]);
        suspended_check();
    }
    nsteps += (uint64_t)depth;
}

static void print_path(const struct setup *s)
{
    printf("%s%s, message of %zu bytes into %zu, %s:", s->protocol, s->synchronous ? " synchronous" : "",
           s->message, s->room, s->wildcard ? "any source" : "one source");
    for (int i = 0; i < depth; i++)
        printf(" %s%s", action_names[path[i]], i + 1 < depth ? "," : "\n");
}

/* Explores all continuations of a path that leads to a new state. Returns with the path unchanged. */
static void suspended_explore(const struct setup *s)
{
    bool quiet = true;
    for (enum action a = 0; a < ACTIONS && test_failures == 0; a++) {
        test_replay(s);
        const bool may = may_happen(a);
        const uint64_t before = state_key();
        if (may) {
            EXPECT(depth < DEPTH);
            path[depth++] = a;
            suspended_act(a);
            suspended_check();
            if (test_failures)
                print_path(s);
        }
        const uint64_t after = state_key();
        const bool fresh = may && suspended_remember(after);
        quiet &= a < ONCE || after == before;
        world_close();
        if (fresh && test_failures == 0)
            suspended_explore(s);
        depth -= may;
    }
    if (!quiet || test_failures)
        return;
    test_replay(s); /* neither progress nor a transfer changes anything: the end, if no more events happen */
    check_end();
    if (test_failures)
        print_path(s);
    world_close();
}

static void test_search(struct setup s)
{
    EXPECT_EQ(tunable_set(tunables_find("RENDEZVOUS"), s.protocol, SOURCE_PROGRAM), 0);
    memset(seen, 0, SEEN * sizeof(*seen));
    nstates = nsteps = 0;
    suspended_explore(&s);
    printf("%-7s %3zu bytes into %3zu, %s: %" PRIu64 " states, %" PRIu64 " steps\n", s.protocol, s.message,
           s.room, s.wildcard ? "any source" : "one source", nstates, nsteps);
    EXPECT(nstates > 20 && nstates < SEEN / 2);
}

static const char *const protocols[] = {"rput", "getcqe", "get", "putnr", "put", "split", "pipe", "r3"};

#define NOT(event) (1u << (event))

static void test_eager(void)
{
    for (int synchronous = 0; synchronous < 2; synchronous++)
        for (int wildcard = 0; wildcard < 2; wildcard++)
            test_search((struct setup){.protocol = "auto",
                                       .message = 100,
                                       .room = 100,
                                       .wildcard = wildcard,
                                       .synchronous = synchronous});
}

static void any_source(void)
{
    for (size_t p = 0; p < COUNT_OF(protocols); p++)
        test_search((struct setup){.protocol = protocols[p], .message = 600, .room = 600, .wildcard = true});
    EXPECT(nsuspended > 100);
}

static void one_source(void)
{
    for (size_t p = 0; p < COUNT_OF(protocols); p++)
        test_search((struct setup){.protocol = protocols[p],
                                   .message = 600,
                                   .room = 600,
                                   .without = NOT(OTHER_DIES) | NOT(ANOTHER_DIES) | NOT(ACKNOWLEDGE_MORE)});
}

static void test_truncated(void)
{
    for (size_t p = 0; p < COUNT_OF(protocols); p++)
        test_search((struct setup){.protocol = protocols[p],
                                   .message = 600,
                                   .room = 300,
                                   .wildcard = true,
                                   .without = NOT(FREE) | NOT(ANOTHER_DIES)});
}

int main(void)
{
    seen = malloc(SEEN * sizeof(*seen));
    TEST_RUN(test_eager);
    TEST_RUN(any_source);
    TEST_RUN(one_source);
    TEST_RUN(test_truncated);
    free(seen);
    return test_result();
}
