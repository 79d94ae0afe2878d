/* test_rendezvous.c: every rendezvous protocol between two ranks, over a transport that does everything in
 * any order it may (fake.h). Receives with and without wildcards, messages around the eager limit, longer and
 * shorter than the room, cancelled receives. For each message it is checked that it went into the receive
 * that MPI's order requires, that its bytes are right, and that nothing else in the buffer has changed.
 *
 * One sender, one receiver: the order of sends and the order of receives alone say who belongs to whom,
 * however they cross. The oldest receive takes the oldest message that fits, and so on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/tunable.h"
#include "fake.h"

enum { OPS = 80, ROOM_MAX = 1100, DRAIN = 200000 };

static const size_t sizes[] = {8, 256, 257, 400, 400, ROOM_MAX};

struct op {
    struct request *r;
    struct envelope env;
    size_t size; /* of the message, or the room */
    bool started, over, cancelled, failed, cancel_requested;
    int partner; /* receive: the message that is in it, or -1 */
    unsigned char buf[ROOM_MAX];
};

/* One direction: what rank `from` sends to the other. */
struct stream {
    struct op sends[OPS], receives[2 * OPS];
    int nsends, nreceives;
};
static struct stream streams[RANKS];
static bool wrong_allowed; /* transfers fail */
static uint32_t pace;      /* steps between two things that happen */

static unsigned char byte_of(int message, size_t i, size_t size)
{
    if (i < 2)
        return (unsigned char)(message >> (8 * i));
    if (i + 1 == size && message % 3 == 0)
        return 0; /* what PUTNR bets against */
    return (unsigned char)((unsigned)message * 37 + i * 11 + (i >> 8) * 5);
}

static struct fake_rank *sender(const struct stream *s)
{
    return &fake_ranks[s - streams];
}
static struct fake_rank *receiver(const struct stream *s)
{
    return &fake_ranks[RANKS - 1 - (s - streams)];
}

static struct envelope envelope_for(const struct stream *s)
{
    return (struct envelope){
        .context = 2 + 2 * dice(2), .source = (int32_t)(s - streams), .tag = (int32_t)dice(2)};
}

static void send_one(struct stream *s)
{
    if (s->nsends == OPS)
        return;
    int n = s->nsends++;
    struct op *o = &s->sends[n];
    *o = (struct op){.env = envelope_for(s), .size = sizes[dice(COUNT_OF(sizes))], .started = true};
    for (size_t i = 0; i < o->size; i++)
        o->buf[i] = byte_of(n, i, o->size);
    struct fake_rank *me = sender(s);
    EXPECT_EQ(p2p_isend(me->p2p, o->buf, (MPI_Count)o->size, dtype_from(MPI_BYTE),
                        &me->peers[receiver(s)->net.rank], o->env, dice(8) ? SEND_STANDARD : SEND_SYNCHRONOUS,
                        &o->r),
              0);
}

static void receive(struct stream *s, struct envelope env, size_t room)
{
    if (s->nreceives == 2 * OPS)
        return;
    struct op *o = &s->receives[s->nreceives++];
    *o = (struct op){.env = env, .size = room, .started = true, .partner = -1};
    memset(o->buf, 0xdd, sizeof(o->buf));
    EXPECT_EQ(p2p_irecv(receiver(s)->p2p, o->buf, (MPI_Count)room, dtype_from(MPI_BYTE), env, &o->r), 0);
}

static void receive_one(struct stream *s)
{
    struct envelope env = envelope_for(s);
    if (s->nreceives >= OPS)
        return;
    if (dice(8) == 0)
        env.source = MPI_ANY_SOURCE;
    if (dice(8) == 0)
        env.tag = MPI_ANY_TAG;
    receive(s, env, sizes[dice(COUNT_OF(sizes))]);
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
        bad += o->buf[i] != byte_of(n, i, m->size);
    for (size_t i = got; i < sizeof(o->buf); i++)
        bad += o->buf[i] != 0xdd;
    EXPECT_EQ(bad, 0);
}

static bool finish(struct op *o)
{
    if (o->over || !o->started || !o->r->complete)
        return false;
    o->over = true;
    o->cancelled = o->r->cancelled;
    o->failed = o->r->error == MPI_ERR_OTHER;
    EXPECT(!o->failed || wrong_allowed);
    return true;
}

static void look_at_all(struct stream *s)
{
    for (int i = 0; i < s->nsends; i++)
        if (finish(&s->sends[i]))
            request_free(s->sends[i].r);
    for (int i = 0; i < s->nreceives; i++) {
        struct op *o = &s->receives[i];
        if (!finish(o))
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
    EXPECT_EQ(p2p_cancel(receiver(s)->p2p, o->r), 0);
}

static void step(void)
{
    fake_hardware();
    net_progress(&fake_ranks[dice(RANKS)].net);
    for (int i = 0; i < RANKS; i++)
        look_at_all(&streams[i]);
}

static bool all_over(const struct op *ops, int n)
{
    for (int i = 0; i < n; i++)
        if (!ops[i].over)
            return false;
    return true;
}

static bool settled(bool receives)
{
    for (int i = 0; i < RANKS; i++)
        if (!all_over(receives ? streams[i].receives : streams[i].sends,
                      receives ? streams[i].nreceives : streams[i].nsends))
            return false;
    return fake_quiet();
}

/* Cancels what waits for nothing, then receives what is left. */
static void drain(void)
{
    for (int i = 0; i < RANKS; i++)
        for (int k = 0; k < streams[i].nreceives; k++)
            cancel_receive(&streams[i], k);
    for (int left = DRAIN; left > 0 && !settled(true); left--)
        step();
    EXPECT(settled(true));
    for (int left = DRAIN; left > 0 && !settled(false); left--) {
        for (int i = 0; i < RANKS; i++)
            if (all_over(streams[i].receives, streams[i].nreceives) &&
                !all_over(streams[i].sends, streams[i].nsends))
                for (uint64_t context = 2; context <= 4; context += 2)
                    if (p2p_iprobe(receiver(&streams[i])->p2p,
                                   (struct envelope){context, MPI_ANY_SOURCE, MPI_ANY_TAG},
                                   MPI_STATUS_IGNORE))
                        receive(&streams[i], (struct envelope){context, MPI_ANY_SOURCE, MPI_ANY_TAG},
                                ROOM_MAX);
        step();
    }
    EXPECT(settled(false) && settled(true));
}

/* The receives in order take the messages in order, cancelled ones left out. */
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

static void episode(struct fake_rules rules, uint32_t seed)
{
    fake_seed = seed;
    fake_open(rules);
    memset(streams, 0, sizeof(streams));
    pace = 1 + dice(20);
    for (int i = 0; i < OPS * 3 && test_failures == 0; i++) {
        struct stream *s = &streams[dice(RANKS)];
        if (dice(16) == 0 && s->nreceives)
            cancel_receive(s, (int)dice((uint32_t)s->nreceives));
        else if (dice(2))
            send_one(s);
        else
            receive_one(s);
        for (uint32_t left = dice(2 * pace); left > 0; left--)
            step();
    }
    drain();
    for (int i = 0; i < RANKS; i++)
        check_matching(&streams[i]);
    fake_close();
}

static uint64_t counted(const char *name)
{
    for (size_t i = 0; i < counters_count(); i++)
        if (strcmp(counters_get(i)->name, name) == 0)
            return counters_get(i)->value;
    EXPECT(!name);
    return 0;
}

static const char *const protocols[] = {"auto", "rput",  "getcqe", "get", "putnr",
                                        "put",  "split", "pipe",   "r3"};

static void episodes(struct fake_rules rules, int n)
{
    for (size_t p = 0; p < COUNT_OF(protocols); p++) {
        EXPECT_EQ(tunable_set(tunables_find("RENDEZVOUS"), protocols[p], SOURCE_PROGRAM), 0);
        for (int e = 0; e < n && test_failures == 0; e++) {
            episode(rules, (uint32_t)(p * 1000003 + (size_t)e * 7919 + 1));
            if (test_failures)
                printf("in episode %d of %s\n", e, protocols[p]);
        }
    }
}

#define RDMA .put = true, .get = true

static void in_order(void)
{
    episodes((struct fake_rules){.caps = {RDMA, .put_ordered = true, .last_byte_last = true}}, 30);
}

static void out_of_order(void)
{
    episodes((struct fake_rules){.caps = {RDMA, .last_byte_last = true}}, 30);
}

static void no_last_byte(void)
{
    episodes((struct fake_rules){.caps = {RDMA}}, 15);
    episodes((struct fake_rules){.caps = {RDMA, .put_ordered = true}}, 15);
}

static void by_processor(void)
{
    episodes(
        (struct fake_rules){.caps = {RDMA, .cpu_moves = true, .put_ordered = true, .last_byte_last = true}},
        15);
}

/* Tests an adapter that is a program: see protocol.c. */
static void by_program(void)
{
    episodes(
        (struct fake_rules){.caps = {RDMA, .software = true, .put_ordered = true, .last_byte_last = true}},
        15);
}

static void refused(void)
{
    episodes((struct fake_rules){.caps = {RDMA, .put_ordered = true, .last_byte_last = true}, .again = 3},
             20);
    episodes((struct fake_rules){.caps = {RDMA, .last_byte_last = true}, .again = 3}, 20);
}

static void starving(void)
{
    uint64_t before = counted("p2p_starved_rendezvous");
    episodes((struct fake_rules){.caps = {RDMA, .put_ordered = true, .last_byte_last = true, .starves = true,
                                          .frame_max = 2048},
                                 .again = 2},
             15);
    EXPECT(counted("p2p_starved_rendezvous") > before);
}

static void not_registered(void)
{
    episodes((struct fake_rules){.caps = {RDMA, .put_ordered = true, .last_byte_last = true},
                                 .unregistrable = 3,
                                 .again = 8},
             20);
}

static void one_sided_only(void)
{
    episodes((struct fake_rules){.caps = {.put = true, .put_ordered = true, .last_byte_last = true}}, 10);
    episodes((struct fake_rules){.caps = {.get = true, .put_ordered = true, .last_byte_last = true}}, 10);
    episodes((struct fake_rules){.again = 4}, 10);
}

/* Failing transfers: both sides are notified, and the other messages are right. */
static void failing(void)
{
    wrong_allowed = true;
    episodes((struct fake_rules){.caps = {RDMA, .put_ordered = true, .last_byte_last = true}, .fails = 4},
             20);
    episodes((struct fake_rules){.caps = {RDMA, .last_byte_last = true}, .fails = 4}, 20);
    episodes(
        (struct fake_rules){.caps = {RDMA, .cpu_moves = true, .put_ordered = true, .last_byte_last = true},
                            .fails = 4},
        10);
    wrong_allowed = false;
}

static void all_used(void)
{
    static const char *const names[] = {
        "p2p_rendezvous_rput",     "p2p_rendezvous_getcqe", "p2p_rendezvous_get",   "p2p_rendezvous_putnr",
        "p2p_rendezvous_put",      "p2p_rendezvous_r3",     "p2p_offers_void",      "p2p_offers_crossed",
        "p2p_offer_notifications", "p2p_rendezvous_held",   "p2p_rendezvous_split", "p2p_rendezvous_pipe",
        "p2p_rendezvous_pipe_cut"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        printf("%s %" PRIu64 "\n", names[i], counted(names[i]));
        EXPECT(counted(names[i]) > 50);
    }
}

int main(void)
{
    TEST_RUN(in_order);
    TEST_RUN(out_of_order);
    TEST_RUN(no_last_byte);
    TEST_RUN(by_processor);
    TEST_RUN(by_program);
    TEST_RUN(refused);
    TEST_RUN(starving);
    TEST_RUN(not_registered);
    TEST_RUN(one_sided_only);
    TEST_RUN(failing);
    TEST_RUN(all_used);
    return test_result();
}
