/* test_suspended.c: one message and one receive while processes die: every order of events, for eager
 * messages and for every rendezvous protocol, over the transport of fake.h. The receive is posted,
 * matches, transfers, is suspended by the death of another process, resumed by an acknowledgement or by
 * its message, cancelled, freed, revoked; the sender may die at any step.
 *
 * The search runs the real engine: each order is replayed from the start, and an order that leads to a
 * state that was seen before is not continued. A state is the two requests, the frames and transfers under
 * way, the data that has arrived, and the events that have happened (hash_state).
 *
 * After each step: a receive that is complete without an error has all its data; one that is complete with
 * MPIX_ERR_PROC_FAILED_PENDING is posted, is in the state RECV_SUSPENDED, and an unacknowledged death
 * exists. When nothing is left to do, both requests have the result that the events call for, and nothing
 * is registered.
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
    OTHER_DIES,       /* a process dies that is neither sender nor receiver */
    ACKNOWLEDGE,      /* the receiver calls MPIX_Comm_ack_failed */
    ANOTHER_DIES,     /* a second such process dies after the acknowledgement */
    ACKNOWLEDGE_MORE, /* the receiver acknowledges the second death */
    CANCEL,
    FREE, /* MPI_Request_free of the receive */
    REVOKE,
    SENDER_DIES,
    ONCE_EVENTS, /* the events above happen at most once */
    RECEIVER_PROGRESS = ONCE_EVENTS,
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

/* Parameters of one search. */
struct setup {
    const char *protocol;
    size_t message, room;
    bool wildcard, synchronous;
    uint32_t excluded_events; /* bit mask of events that do not happen */
};

static struct world {
    struct setup setup;
    uint32_t done; /* bit mask of events that have happened */
    int ndead, nacked;
    bool revoked, sender_dead;
    struct request *send, *receive; /* NULL: not started, or complete and freed */
    int send_error, receive_error;
    bool send_over, receive_over, receive_cancelled, receive_is_free;
    unsigned char data[SIZE_MAX_], buf[SIZE_MAX_ + 8], buf_at_completion[SIZE_MAX_ + 8];
} w;

static uint64_t *seen;
static uint64_t nstates, nsteps;
static uint64_t nsuspended; /* states in which the receive is suspended */
static enum action path[DEPTH];
static int depth;

static int has_unacked_death(void *arg, struct envelope env)
{
    (void)arg;
    if (w.revoked)
        return MPIX_ERR_REVOKED;
    if (env.source == MPI_ANY_SOURCE)
        return w.nacked < w.ndead ? MPIX_ERR_PROC_FAILED_PENDING : 0;
    return w.sender_dead ? MPIX_ERR_PROC_FAILED : 0;
}

static struct fake_rank *receiver_rank(void)
{
    return &fake_ranks[RECEIVER];
}

static void world_open(const struct setup *s)
{
    fake_random_is_max = true;
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
    p2p_on_fault(receiver_rank()->p2p, has_unacked_death, NULL, NULL);
}

static void discard_transfers(struct list *queue, bool fail)
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
            discard_transfers(&fake_ranks[i].out[k], false);
    for (int i = 0; i < RANKS; i++) {
        struct fake_rank *r = &fake_ranks[i];
        discard_transfers(&r->gets, false);
        p2p_close(r->p2p);
        paces_free(&r->net.paces);
    }
    fake_random_is_max = false;
}

/* ---- actions ---- */

static void post_receive(void)
{
    struct envelope env = {.context = 2, .source = w.setup.wildcard ? MPI_ANY_SOURCE : SENDER, .tag = 5};
    EXPECT_EQ(p2p_irecv(receiver_rank()->p2p, w.buf, (MPI_Count)w.setup.room, dtype_from_handle(MPI_BYTE),
                        env, &w.receive),
              0);
}

static void start_send(void)
{
    struct fake_rank *me = &fake_ranks[SENDER];
    struct envelope env = {.context = 2, .source = SENDER, .tag = 5};
    EXPECT_EQ(p2p_isend(me->p2p, w.data, (MPI_Count)w.setup.message, dtype_from_handle(MPI_BYTE),
                        &me->peers[RECEIVER], env, w.setup.synchronous ? SEND_SYNCHRONOUS : SEND_STANDARD,
                        &w.send),
              0);
}

/* True while a send waits for an offer; the production limit is a time, here the event HOLD_ENDS. */
static bool send_waits_for_offer(void)
{
    return w.send && !w.send->shared && p2p_request(w.send)->state == STATE_SEND_HELD &&
           p2p_request(w.send)->hold.since != 0;
}

static void kill_process(uint32_t number, struct peer *peer)
{
    w.ndead++;
    receiver_rank()->net.died(receiver_rank()->net.deliver_ctx, number, peer);
}

/* The sender dies: the transport ends its transfers, and nothing more arrives from it. */
static void kill_sender(void)
{
    struct fake_rank *dead = &fake_ranks[SENDER];
    struct peer *peer = &receiver_rank()->peers[SENDER];
    w.sender_dead = true;
    peer->ops = &lost_transport;
    peer->eager_max = UINT64_MAX - 1;
    peer->eager_below = UINT64_MAX;
    discard_transfers(&dead->out[RECEIVER], false);
    discard_transfers(&dead->gets, false);
    discard_transfers(&receiver_rank()->out[SENDER], true);
    discard_transfers(&receiver_rank()->gets, true);
    kill_process(SENDER, peer);
}

static void acknowledge_deaths(void)
{
    w.nacked = w.ndead;
    p2p_recheck_faults(receiver_rank()->p2p);
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

static struct fake_item *find_unfinished_transfer(struct list *queue)
{
    list_foreach(pos, queue)
    {
        struct fake_item *i = list_entry(pos, struct fake_item, link);
        if (i->op && i->phase < 2)
            return i;
    }
    return NULL;
}

static struct fake_item *find_put_in_flight(void)
{
    struct fake_item *i = find_unfinished_transfer(&fake_ranks[SENDER].out[RECEIVER]);
    return i ? i : find_unfinished_transfer(&receiver_rank()->out[SENDER]);
}

static bool event_is_possible(enum action a)
{
    if (a < ONCE_EVENTS && ((w.done | w.setup.excluded_events) >> a & 1))
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
        return send_waits_for_offer() && !w.sender_dead;
    case MOVE_PUT:
        return find_put_in_flight() != NULL;
    case MOVE_GET:
        return find_unfinished_transfer(&receiver_rank()->gets) != NULL;
    default:
        return true;
    }
}

static void execute_action(enum action a)
{
    w.done |= a < ONCE_EVENTS ? 1u << a : 0;
    switch (a) {
    case POST:
        post_receive();
        break;
    case SEND:
        start_send();
        break;
    case OTHER_DIES:
    case ANOTHER_DIES:
        kill_process(ABSENT + (uint32_t)a, NULL);
        break;
    case ACKNOWLEDGE:
    case ACKNOWLEDGE_MORE:
        acknowledge_deaths();
        break;
    case CANCEL:
        EXPECT_EQ(p2p_cancel(receiver_rank()->p2p, w.receive), 0);
        break;
    case FREE:
        free_receive();
        break;
    case REVOKE:
        w.revoked = true;
        p2p_recheck_faults(receiver_rank()->p2p);
        break;
    case SENDER_DIES:
        kill_sender();
        break;
    case RECEIVER_PROGRESS:
        net_progress(&receiver_rank()->net);
        break;
    case SENDER_PROGRESS:
        net_progress(&fake_ranks[SENDER].net);
        break;
    case HOLD_ENDS:
        p2p_request(w.send)->hold.since = 0;
        break;
    case MOVE_PUT:
        fake_copy_half(find_put_in_flight());
        break;
    default:
        fake_copy_half(find_unfinished_transfer(&receiver_rank()->gets));
    }
}

/* ---- checks ---- */

static bool has_data(void)
{
    return memcmp(w.buf, w.data, MIN(w.setup.message, w.setup.room)) == 0;
}

static bool buffer_is_untouched(void)
{
    for (size_t i = 0; i < sizeof(w.buf); i++)
        if (w.buf[i] != 0xdd)
            return false;
    return true;
}

static void check_ended_receive(void)
{
    const int full = w.setup.message > w.setup.room ? MPI_ERR_TRUNCATE : 0;
    w.receive_over = true;
    w.receive_error = w.receive->error;
    w.receive_cancelled = w.receive->cancelled;
    if (w.receive_cancelled) {
        EXPECT_EQ(w.receive_error, 0);
        EXPECT(w.done >> CANCEL & 1);
        EXPECT(buffer_is_untouched());
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
    memcpy(w.buf_at_completion, w.buf, sizeof(w.buf)); /* from now on the buffer belongs to the program */
}

static void check_state(void)
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
            check_ended_receive();
    }
    if (w.receive_over)
        EXPECT(memcmp(w.buf_at_completion, w.buf, sizeof(w.buf)) == 0);
    if (w.send && !w.sender_dead && w.send->complete) {
        w.send_over = true;
        w.send_error = w.send->error;
        request_free(w.send);
        w.send = NULL;
    }
    for (size_t i = w.setup.room; i < sizeof(w.buf); i++)
        EXPECT_EQ(w.buf[i], 0xdd);
}

/* Checks the final state, in which no event is left. */
static void check_final_state(void)
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
        EXPECT_EQ(receiver_rank()->registered, 0);
    EXPECT(list_empty(&receiver_rank()->net.stalled));
}

/* ---- the search ---- */

static void mix_hash(uint64_t *key, uint64_t value)
{
    *key = (*key ^ value) * 0x9e3779b97f4a7c15u;
    *key ^= *key >> 29;
}

static void mix_request(uint64_t *key, const struct request *base)
{
    mix_hash(key, base != NULL);
    if (!base || base->shared)
        return;
    const struct p2p_request *r = (const struct p2p_request *)base;
    mix_hash(key, r->state | (uint64_t)(base->complete != 0) << 8 | (uint64_t)r->match.posted << 9 |
                      (uint64_t)r->registered << 10 | (uint64_t)base->freed << 11 |
                      (uint64_t)(uint32_t)base->error << 32);
    if (request_is_in_state(r, STATE_BIT(SEND_HELD)))
        mix_hash(key, r->hold.since != 0);
    if (request_is_in_state(r, STATE_BIT(SEND_PIECES) | STATE_BIT(RECV_PIECES)))
        mix_hash(key, r->pieces.moved);
}

static uint64_t hash_state(void)
{
    uint64_t key = 1;
    mix_hash(&key, w.done | (uint64_t)w.ndead << 32 | (uint64_t)w.nacked << 40 | (uint64_t)w.send_over << 48 |
                       (uint64_t)w.receive_over << 49 | (uint64_t)w.receive_cancelled << 50);
    mix_request(&key, w.send);
    mix_request(&key, w.receive);
    for (size_t i = 0; i < sizeof(w.buf); i++)
        mix_hash(&key, w.buf[i]);
    for (int i = 0; i < RANKS; i++) {
        struct fake_rank *r = &fake_ranks[i];
        struct list *queues[] = {&r->gets, &r->out[!i]};
        mix_hash(&key, (uint64_t)r->registered << 32 | (uint64_t)p2p_posted_length(r->p2p) << 16 |
                           p2p_unexpected_length(r->p2p) << 1 | list_empty(&r->net.stalled));
        for (size_t q = 0; q < COUNT_OF(queues); q++) {
            mix_hash(&key, 77);
            list_foreach(pos, queues[q])
            {
                const struct fake_item *f = list_entry(pos, struct fake_item, link);
                mix_hash(&key, f->op ? 256u + (unsigned)f->phase : f->header.kind);
                mix_hash(&key, f->op ? 0 : (uint64_t)f->header.flags << 32 | f->header.aux);
                mix_hash(&key, f->len);
            }
        }
    }
    return key ? key : 1;
}

/* Returns false if the state was seen before. */
static bool add_seen_state(uint64_t key)
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

static void replay_path(const struct setup *s)
{
    world_open(s);
    for (int i = 0; i < depth; i++) {
        execute_action(path[i]);
        check_state();
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
static void explore_continuations(const struct setup *s)
{
    bool quiet = true;
    for (enum action a = 0; a < ACTIONS && test_failures == 0; a++) {
        replay_path(s);
        const bool may = event_is_possible(a);
        const uint64_t before = hash_state();
        if (may) {
            EXPECT(depth < DEPTH);
            path[depth++] = a;
            execute_action(a);
            check_state();
            if (test_failures)
                print_path(s);
        }
        const uint64_t after = hash_state();
        const bool fresh = may && add_seen_state(after);
        quiet &= a < ONCE_EVENTS || after == before;
        world_close();
        if (fresh && test_failures == 0)
            explore_continuations(s);
        depth -= may;
    }
    if (!quiet || test_failures)
        return;
    /* No progress call or transfer changes the state: it is final until another event happens. */
    replay_path(s);
    check_final_state();
    if (test_failures)
        print_path(s);
    world_close();
}

static void search_all_orders(struct setup s)
{
    EXPECT_EQ(tunable_set(tunables_find("RENDEZVOUS"), s.protocol, SOURCE_PROGRAM), 0);
    memset(seen, 0, SEEN * sizeof(*seen));
    nstates = nsteps = 0;
    explore_continuations(&s);
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
            search_all_orders((struct setup){.protocol = "auto",
                                             .message = 100,
                                             .room = 100,
                                             .wildcard = wildcard,
                                             .synchronous = synchronous});
}

static void test_any_source(void)
{
    for (size_t p = 0; p < COUNT_OF(protocols); p++)
        search_all_orders(
            (struct setup){.protocol = protocols[p], .message = 600, .room = 600, .wildcard = true});
    EXPECT(nsuspended > 100);
}

static void test_one_source(void)
{
    for (size_t p = 0; p < COUNT_OF(protocols); p++)
        search_all_orders(
            (struct setup){.protocol = protocols[p],
                           .message = 600,
                           .room = 600,
                           .excluded_events = NOT(OTHER_DIES) | NOT(ANOTHER_DIES) | NOT(ACKNOWLEDGE_MORE)});
}

static void test_truncated(void)
{
    for (size_t p = 0; p < COUNT_OF(protocols); p++)
        search_all_orders((struct setup){.protocol = protocols[p],
                                         .message = 600,
                                         .room = 300,
                                         .wildcard = true,
                                         .excluded_events = NOT(FREE) | NOT(ANOTHER_DIES)});
}

int main(void)
{
    seen = malloc(SEEN * sizeof(*seen));
    TEST_RUN(test_eager);
    TEST_RUN(test_any_source);
    TEST_RUN(test_one_source);
    TEST_RUN(test_truncated);
    free(seen);
    return test_result();
}
