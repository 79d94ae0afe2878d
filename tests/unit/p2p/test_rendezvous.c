/* test_rendezvous.c: every rendezvous protocol between two ranks, over the random transport of fake.h:
 * receives with and without wildcards, messages around the eager limit, longer and shorter than the
 * receive buffer, cancelled receives. Each message must go into the receive that MPI's matching order
 * requires, with correct bytes, and must change nothing else in the buffer.
 *
 * With one sender and one receiver the order of sends and the order of receives determine all matches: the
 * oldest receive takes the oldest message that matches, and so on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/tunable.h"
#include "fake.h"

enum { OPS = 80, ROOM_MAX = 1100, DRAIN = 200000 };

static const size_t sizes[] = {8, 256, 257, 400, 400, ROOM_MAX};

struct op {
    struct request *r;
    struct envelope env;
    size_t size; /* bytes of the message or of the receive buffer */
    bool started, over, cancelled, failed, cancel_requested;
    int partner; /* receive: index of the received message, or -1 */
    unsigned char buf[ROOM_MAX];
};

/* All messages and receives of one direction. */
struct stream {
    struct op sends[OPS], receives[2 * OPS];
    int nsends, nreceives;
};
static struct stream streams[RANKS];
static bool failures_expected;       /* the transport fails transfers, so requests may fail */
static uint32_t steps_per_operation; /* mean number of steps between two operations of the program */

static unsigned char message_byte(int message, size_t i, size_t size)
{
    if (i < 2)
        return (unsigned char)(message >> (8 * i));
    if (i + 1 == size && message % 3 == 0)
        return 0; /* the value that PUTNR uses to detect missing bytes */
    return (unsigned char)((unsigned)message * 37 + i * 11 + (i >> 8) * 5);
}

static struct fake_rank *sender_of(const struct stream *s)
{
    return &fake_ranks[s - streams];
}
static struct fake_rank *receiver_of(const struct stream *s)
{
    return &fake_ranks[RANKS - 1 - (s - streams)];
}

static struct envelope make_random_envelope(const struct stream *s)
{
    return (struct envelope){.context = 2 + 2 * random_below(2),
                             .source = (int32_t)(s - streams),
                             .tag = (int32_t)random_below(2)};
}

static void start_random_send(struct stream *s)
{
    if (s->nsends == OPS)
        return;
    int n = s->nsends++;
    struct op *o = &s->sends[n];
    *o = (struct op){
        .env = make_random_envelope(s), .size = sizes[random_below(COUNT_OF(sizes))], .started = true};
    for (size_t i = 0; i < o->size; i++)
        o->buf[i] = message_byte(n, i, o->size);
    struct fake_rank *me = sender_of(s);
    EXPECT_EQ(p2p_isend(me->p2p, o->buf, (MPI_Count)o->size, dtype_from_handle(MPI_BYTE),
                        &me->peers[receiver_of(s)->net.rank], o->env,
                        random_below(8) ? SEND_STANDARD : SEND_SYNCHRONOUS, &o->r),
              0);
}

static void start_receive(struct stream *s, struct envelope env, size_t room)
{
    if (s->nreceives == 2 * OPS)
        return;
    struct op *o = &s->receives[s->nreceives++];
    *o = (struct op){.env = env, .size = room, .started = true, .partner = -1};
    memset(o->buf, 0xdd, sizeof(o->buf));
    EXPECT_EQ(
        p2p_irecv(receiver_of(s)->p2p, o->buf, (MPI_Count)room, dtype_from_handle(MPI_BYTE), env, &o->r), 0);
}

static void start_random_receive(struct stream *s)
{
    struct envelope env = make_random_envelope(s);
    if (s->nreceives >= OPS)
        return;
    if (random_below(8) == 0)
        env.source = MPI_ANY_SOURCE;
    if (random_below(8) == 0)
        env.tag = MPI_ANY_TAG;
    start_receive(s, env, sizes[random_below(COUNT_OF(sizes))]);
}

static void check_received(struct stream *s, struct op *o)
{
    int n = o->buf[0] | o->buf[1] << 8;
    EXPECT(n < s->nsends);
    if (n >= s->nsends)
        return;
    const struct op *m = &s->sends[n];
    size_t got = MIN(m->size, o->size), bad = 0;
    o->partner = n;
    EXPECT_EQ(o->r->bytes, got);
    EXPECT_EQ(o->r->tag, m->env.tag);
    EXPECT_EQ(o->r->source, m->env.source);
    EXPECT_EQ(o->r->error, m->size > o->size ? MPI_ERR_TRUNCATE : 0);
    for (size_t i = 0; i < got; i++)
        bad += o->buf[i] != message_byte(n, i, m->size);
    for (size_t i = got; i < sizeof(o->buf); i++)
        bad += o->buf[i] != 0xdd;
    EXPECT_EQ(bad, 0);
}

static bool check_completion(struct op *o)
{
    if (o->over || !o->started || !o->r->complete)
        return false;
    o->over = true;
    o->cancelled = o->r->cancelled;
    o->failed = o->r->error == MPI_ERR_OTHER;
    EXPECT(!o->failed || failures_expected);
    return true;
}

static void check_all_completions(struct stream *s)
{
    for (int i = 0; i < s->nsends; i++)
        if (check_completion(&s->sends[i]))
            request_free(s->sends[i].r);
    for (int i = 0; i < s->nreceives; i++) {
        struct op *o = &s->receives[i];
        if (!check_completion(o))
            continue;
        if (o->cancelled)
            for (size_t b = 0; b < sizeof(o->buf); b++)
                EXPECT_EQ(o->buf[b], 0xdd);
        else if (!o->failed)
            check_received(s, o);
        request_free(o->r);
    }
}

static void cancel_receive(struct stream *s, int i)
{
    struct op *o = &s->receives[i];
    if (o->over || o->cancel_requested || o->r->complete)
        return;
    o->cancel_requested = true;
    EXPECT_EQ(p2p_cancel(receiver_of(s)->p2p, o->r), 0);
}

static void run_step(void)
{
    fake_step_hardware();
    net_progress(&fake_ranks[random_below(RANKS)].net);
    for (int i = 0; i < RANKS; i++)
        check_all_completions(&streams[i]);
}

static bool all_are_complete(const struct op *ops, int n)
{
    for (int i = 0; i < n; i++)
        if (!ops[i].over)
            return false;
    return true;
}

static bool all_transfers_are_complete(bool receives)
{
    for (int i = 0; i < RANKS; i++)
        if (!all_are_complete(receives ? streams[i].receives : streams[i].sends,
                              receives ? streams[i].nreceives : streams[i].nsends))
            return false;
    return fake_is_idle();
}

/* Cancels receives that no message matches, then receives the remaining messages. */
static void complete_everything(void)
{
    for (int i = 0; i < RANKS; i++)
        for (int k = 0; k < streams[i].nreceives; k++)
            cancel_receive(&streams[i], k);
    for (int left = DRAIN; left > 0 && !all_transfers_are_complete(true); left--)
        run_step();
    EXPECT(all_transfers_are_complete(true));
    for (int left = DRAIN; left > 0 && !all_transfers_are_complete(false); left--) {
        for (int i = 0; i < RANKS; i++)
            if (all_are_complete(streams[i].receives, streams[i].nreceives) &&
                !all_are_complete(streams[i].sends, streams[i].nsends))
                for (uint64_t context = 2; context <= 4; context += 2)
                    if (p2p_iprobe(receiver_of(&streams[i])->p2p,
                                   (struct envelope){context, MPI_ANY_SOURCE, MPI_ANY_TAG},
                                   MPI_STATUS_IGNORE))
                        start_receive(&streams[i], (struct envelope){context, MPI_ANY_SOURCE, MPI_ANY_TAG},
                                      ROOM_MAX);
        run_step();
    }
    EXPECT(all_transfers_are_complete(false) && all_transfers_are_complete(true));
}

/* Checks that receives and messages matched in order, without the cancelled receives. */
static void check_matching(struct stream *s)
{
    bool taken[OPS] = {0};
    for (int i = 0; i < s->nreceives; i++) {
        struct op *o = &s->receives[i];
        int want = -1;
        for (int k = 0; k < s->nsends && want < 0 && !o->cancelled; k++)
            if (!taken[k] && envelope_matches(o->env, s->sends[k].env))
                want = k;
        if (want >= 0)
            taken[want] = true;
        if (!o->failed)
            EXPECT_EQ(o->partner, want);
    }
}

static void run_episode(struct fake_rules rules, uint32_t seed)
{
    fake_seed = seed;
    fake_open(rules);
    memset(streams, 0, sizeof(streams));
    steps_per_operation = 1 + random_below(20);
    for (int i = 0; i < OPS * 3 && test_failures == 0; i++) {
        struct stream *s = &streams[random_below(RANKS)];
        if (random_below(16) == 0 && s->nreceives)
            cancel_receive(s, (int)random_below((uint32_t)s->nreceives));
        else if (random_below(2))
            start_random_send(s);
        else
            start_random_receive(s);
        for (uint32_t left = random_below(2 * steps_per_operation); left > 0; left--)
            run_step();
    }
    complete_everything();
    for (int i = 0; i < RANKS; i++)
        check_matching(&streams[i]);
    fake_close();
}

static uint64_t get_counter(const char *name)
{
    for (size_t i = 0; i < counters_count(); i++)
        if (strcmp(counters_get(i)->name, name) == 0)
            return counters_get(i)->value;
    EXPECT(!name);
    return 0;
}

static const char *const protocols[] = {"auto", "rput",  "getcqe", "get", "putnr",
                                        "put",  "split", "pipe",   "r3"};

static void run_episodes(struct fake_rules rules, int n)
{
    for (size_t p = 0; p < COUNT_OF(protocols); p++) {
        EXPECT_EQ(tunable_set(tunables_find("RENDEZVOUS"), protocols[p], SOURCE_PROGRAM), 0);
        for (int e = 0; e < n && test_failures == 0; e++) {
            run_episode(rules, (uint32_t)(p * 1000003 + (size_t)e * 7919 + 1));
            if (test_failures)
                printf("failed in episode %d of protocol %s\n", e, protocols[p]);
        }
    }
}

#define RDMA .put = true, .get = true

static void test_in_order(void)
{
    run_episodes((struct fake_rules){.caps = {RDMA, .put_ordered = true, .last_byte_last = true}}, 30);
}

static void test_out_of_order(void)
{
    run_episodes((struct fake_rules){.caps = {RDMA, .last_byte_last = true}}, 30);
}

static void test_no_last_byte_order(void)
{
    run_episodes((struct fake_rules){.caps = {RDMA}}, 15);
    run_episodes((struct fake_rules){.caps = {RDMA, .put_ordered = true}}, 15);
}

static void test_copies_by_processor(void)
{
    run_episodes(
        (struct fake_rules){.caps = {RDMA, .cpu_moves = true, .put_ordered = true, .last_byte_last = true}},
        15);
}

/* An adapter implemented in software, for which protocol.c makes other choices. */
static void test_software_adapter(void)
{
    run_episodes(
        (struct fake_rules){.caps = {RDMA, .software = true, .put_ordered = true, .last_byte_last = true}},
        15);
}

static void test_refused_operations(void)
{
    run_episodes(
        (struct fake_rules){.caps = {RDMA, .put_ordered = true, .last_byte_last = true}, .refuses_one_in = 3},
        20);
    run_episodes((struct fake_rules){.caps = {RDMA, .last_byte_last = true}, .refuses_one_in = 3}, 20);
}

static void test_starving_transport(void)
{
    uint64_t before = get_counter("p2p_starved_rendezvous");
    run_episodes((struct fake_rules){.caps = {RDMA, .put_ordered = true, .last_byte_last = true,
                                              .starves = true, .frame_max = 2048},
                                     .refuses_one_in = 2},
                 15);
    EXPECT(get_counter("p2p_starved_rendezvous") > before);
}

static void test_failing_registration(void)
{
    run_episodes((struct fake_rules){.caps = {RDMA, .put_ordered = true, .last_byte_last = true},
                                     .unregistrable_one_in = 3,
                                     .refuses_one_in = 8},
                 20);
}

static void test_one_sided_only(void)
{
    run_episodes((struct fake_rules){.caps = {.put = true, .put_ordered = true, .last_byte_last = true}}, 10);
    run_episodes((struct fake_rules){.caps = {.get = true, .put_ordered = true, .last_byte_last = true}}, 10);
    run_episodes((struct fake_rules){.refuses_one_in = 4}, 10);
}

/* Failing transfers: both sides are notified, and all other messages are correct. */
static void test_failing_transfers(void)
{
    failures_expected = true;
    run_episodes(
        (struct fake_rules){.caps = {RDMA, .put_ordered = true, .last_byte_last = true}, .fails_one_in = 4},
        20);
    run_episodes((struct fake_rules){.caps = {RDMA, .last_byte_last = true}, .fails_one_in = 4}, 20);
    run_episodes(
        (struct fake_rules){.caps = {RDMA, .cpu_moves = true, .put_ordered = true, .last_byte_last = true},
                            .fails_one_in = 4},
        10);
    failures_expected = false;
}

static void test_all_protocols_used(void)
{
    static const char *const names[] = {
        "p2p_rendezvous_rput",     "p2p_rendezvous_getcqe", "p2p_rendezvous_get",   "p2p_rendezvous_putnr",
        "p2p_rendezvous_put",      "p2p_rendezvous_r3",     "p2p_offers_void",      "p2p_offers_crossed",
        "p2p_offer_notifications", "p2p_rendezvous_held",   "p2p_rendezvous_split", "p2p_rendezvous_pipe",
        "p2p_rendezvous_pipe_cut"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        printf("%s %" PRIu64 "\n", names[i], get_counter(names[i]));
        EXPECT(get_counter(names[i]) > 50);
    }
}

int main(void)
{
    TEST_RUN(test_in_order);
    TEST_RUN(test_out_of_order);
    TEST_RUN(test_no_last_byte_order);
    TEST_RUN(test_copies_by_processor);
    TEST_RUN(test_software_adapter);
    TEST_RUN(test_refused_operations);
    TEST_RUN(test_starving_transport);
    TEST_RUN(test_failing_registration);
    TEST_RUN(test_one_sided_only);
    TEST_RUN(test_failing_transfers);
    TEST_RUN(test_all_protocols_used);
    return test_result();
}
