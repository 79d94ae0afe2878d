/* staged.c: messages of GPU memory by STAGED between two ranks in this process, over the random transport of
 * tests/unit/p2p/fake.h: many at the same time, lengths around those of chunks, host memory at one end, data
 * with holes, receives that are too short; refused and failing writes, memory that cannot be registered, and
 * copies that fail. Each message arrives, or an error is returned, and nothing stays registered.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "area.h"
#include "base/tunable.h"
#include "dt/build.h"
#include "p2p/device_staging.h"
#include "program.h"

#include "../unit/p2p/fake.h"

enum { MESSAGES = 24, DRAIN = 400000, GUARD = 64 };

struct message {
    struct area out, in;
    size_t bytes, room; /* lengths of both buffers */
    bool has_holes;
    int from;
    unsigned seed;
    struct request *send, *receive;
};

static struct message messages[MESSAGES];
static struct dtype *vector; /* 3 of 5 integers, and a hole behind the last ones */
static bool failures_expected, copies_fail;
static int failed;

#define VECTOR_BYTES 20

static uint64_t get_counter(const char *name)
{
    for (size_t i = 0; i < counters_count(); i++)
        if (strcmp(counters_get(i)->name, name) == 0)
            return counters_get(i)->value;
    return 0;
}

static void make_message(struct message *m, int number)
{
    static const size_t lengths[] = {40000,
                                     DEVICE_CHUNK - 1,
                                     DEVICE_CHUNK,
                                     DEVICE_CHUNK + 1,
                                     2 * DEVICE_CHUNK,
                                     3 * DEVICE_CHUNK + 5,
                                     5 * DEVICE_CHUNK};
    const uint32_t ends = random_below(4);
    *m = (struct message){.from = number % RANKS, .seed = fake_seed};
    m->bytes = m->room = lengths[random_below(COUNT_OF(lengths))];
    m->has_holes = ends != 0 && random_below(3) == 0;
    if (m->has_holes)
        m->bytes = m->room = m->bytes / VECTOR_BYTES * VECTOR_BYTES;
    else if (random_below(6) == 0)
        m->room = m->bytes - random_below(900);
    m->out = area_alloc(ends == 0 ? AREA_HOST : AREA_DEVICE, m->bytes);
    m->in = area_alloc(ends == 1 ? AREA_HOST : AREA_DEVICE, m->room + GUARD);
    area_fill(&m->out, m->seed);
    area_fill(&m->in, m->seed + 1);
}

static void post_send(struct message *m, int number)
{
    struct fake_rank *me = &fake_ranks[m->from];
    const struct envelope env = {.context = 2, .source = m->from, .tag = number};
    struct dtype *type = m->has_holes ? vector : dtype_from_handle(MPI_BYTE);
    EXPECT_EQ(p2p_isend(me->p2p, m->out.at, (MPI_Count)(m->has_holes ? m->bytes / VECTOR_BYTES : m->bytes),
                        type, &me->peers[1 - m->from], env, SEND_STANDARD, &m->send),
              0);
}

static void post_receive(struct message *m, int number)
{
    struct fake_rank *me = &fake_ranks[1 - m->from];
    const struct envelope env = {.context = 2, .source = m->from, .tag = number};
    struct dtype *type = m->has_holes ? vector : dtype_from_handle(MPI_BYTE);
    EXPECT_EQ(p2p_irecv(me->p2p, m->in.at, (MPI_Count)(m->has_holes ? m->room / VECTOR_BYTES : m->room), type,
                        env, &m->receive),
              0);
}

static void run_step(void)
{
    if (copies_fail)
        setenv("SOFTCUDA_FAIL", random_below(200) == 0 ? "cuMemcpyAsync,cuMemcpy2DAsync_v2" : "", 1);
    fake_step_hardware();
    net_progress(&fake_ranks[random_below(RANKS)].net);
}

static bool is_complete_at_both_ends(const struct message *m)
{
    return m->send && m->send->complete && m->receive && m->receive->complete;
}

static void check_message(const struct message *m)
{
    char *sent = malloc(m->bytes), *expected = malloc(m->in.size), *seen = malloc(m->in.size);
    const int error = m->receive->error;
    size_t bad = 0;
    failed += m->send->error != 0 || (error != 0 && error != MPI_ERR_TRUNCATE);
    area_pattern(sent, m->bytes, m->seed);
    area_pattern(expected, m->in.size, m->seed + 1);
    for (size_t i = 0; i < m->room; i++)
        if (!m->has_holes || i / 4 % 5 < 3)
            expected[i] = sent[i];
    area_read(&m->in, 0, seen, m->in.size);
    for (size_t i = error == 0 || error == MPI_ERR_TRUNCATE ? 0 : m->room; i < m->in.size; i++)
        bad += seen[i] != expected[i];
    if (!failures_expected) {
        EXPECT_EQ(m->send->error, 0);
        EXPECT_EQ(error, m->room < m->bytes ? MPI_ERR_TRUNCATE : 0);
        EXPECT_EQ(bad, 0);
    } else { /* a receive that is too short reports this error and no other one */
        EXPECT(m->room < m->bytes || (bad == 0 && (m->send->error == 0 || error != 0)));
    }
    free(sent);
    free(expected);
    free(seen);
}

static void run_episode(struct fake_rules rules, uint32_t seed)
{
    fake_seed = seed;
    fake_open(rules);
    for (int i = 0; i < MESSAGES; i++)
        make_message(&messages[i], i);
    for (int i = 0; i < MESSAGES; i++) {
        const bool first = random_below(2);
        if (first)
            post_receive(&messages[i], i);
        for (uint32_t left = random_below(40); left > 0; left--)
            run_step();
        post_send(&messages[i], i);
        for (uint32_t left = random_below(40); left > 0; left--)
            run_step();
        if (!first)
            post_receive(&messages[i], i);
    }
    int over = 0;
    for (int left = DRAIN; left > 0 && (over < MESSAGES || !fake_is_idle()); left--) {
        run_step();
        while (over < MESSAGES && is_complete_at_both_ends(&messages[over]))
            over++;
    }
    setenv("SOFTCUDA_FAIL", "", 1);
    EXPECT_EQ(over, MESSAGES);
    for (int i = 0; i < over; i++) {
        check_message(&messages[i]);
        request_free(messages[i].send);
        request_free(messages[i].receive);
        area_free(&messages[i].out);
        area_free(&messages[i].in);
    }
    fake_close();
}

static void run_episodes(struct fake_rules rules, uint32_t n)
{
    rules.caps.put = true;
    rules.caps.frame_max = 32768;
    for (uint32_t e = 0; e < n && test_failures == 0; e++) {
        run_episode(rules, e * 7919 + 1);
        if (test_failures)
            printf("failed in episode %u\n", e);
    }
}

static void test_in_order(void)
{
    const uint64_t pieces = get_counter("p2p_rendezvous_r3"), staged = get_counter("p2p_rendezvous_staged");
    run_episodes((struct fake_rules){.caps = {.put_ordered = true}}, 6);
    EXPECT_EQ(get_counter("p2p_rendezvous_r3"), pieces);
    EXPECT(get_counter("p2p_rendezvous_staged") > staged + MESSAGES);
}

static void test_out_of_order(void)
{
    run_episodes((struct fake_rules){.refuses_one_in = 0}, 6);
}

static void test_refused_operations(void)
{
    run_episodes((struct fake_rules){.refuses_one_in = 3}, 6);
}

/* Messages whose staging buffer cannot be registered at one end go in frames. */
static void test_failing_registration(void)
{
    const uint64_t before = get_counter("p2p_rendezvous_r3");
    run_episodes((struct fake_rules){.unregistrable_one_in = 3, .refuses_one_in = 8}, 6);
    EXPECT(get_counter("p2p_rendezvous_r3") > before);
}

static void test_failing_writes(void)
{
    failures_expected = true;
    failed = 0;
    run_episodes((struct fake_rules){.fails_one_in = 20}, 6);
    failures_expected = false;
    EXPECT(failed > 0);
}

static void test_failing_copies(void)
{
    failures_expected = copies_fail = true;
    failed = 0;
    run_episodes((struct fake_rules){.refuses_one_in = 8}, 6);
    failures_expected = copies_fail = false;
    EXPECT(failed > 0);
}

/* `auto` uses STAGED from one chunk on, unless the adapter is a program. */
static void test_choice(void)
{
    const uint64_t pieces = get_counter("p2p_rendezvous_r3"), staged = get_counter("p2p_rendezvous_staged");
    tunable_set(tunables_find("RENDEZVOUS"), "auto", SOURCE_PROGRAM);
    run_episodes((struct fake_rules){.caps = {.software = true}}, 2);
    EXPECT(get_counter("p2p_rendezvous_r3") > pieces);
    EXPECT_EQ(get_counter("p2p_rendezvous_staged"), staged);
    run_episodes((struct fake_rules){.refuses_one_in = 8}, 2);
    EXPECT(get_counter("p2p_rendezvous_staged") > staged + MESSAGES);
    tunable_set(tunables_find("RENDEZVOUS"), "r3", SOURCE_PROGRAM);
    const uint64_t before = get_counter("p2p_rendezvous_staged");
    run_episodes((struct fake_rules){.refuses_one_in = 8}, 1);
    EXPECT_EQ(get_counter("p2p_rendezvous_staged"), before);
}

int main(void)
{
    program_open();
    tunable_set(tunables_find("RENDEZVOUS"), "staged", SOURCE_PROGRAM);
    struct dtype *row;
    dtype_contiguous(3, dtype_from_handle(MPI_INT), false, &row);
    dtype_resized(row, 0, VECTOR_BYTES, false, &vector);
    EXPECT_EQ(dtype_commit(vector), 0);
    TEST_RUN(test_in_order);
    TEST_RUN(test_out_of_order);
    TEST_RUN(test_refused_operations);
    TEST_RUN(test_failing_registration);
    TEST_RUN(test_failing_writes);
    TEST_RUN(test_failing_copies);
    TEST_RUN(test_choice);
    dtype_release(row);
    dtype_release(vector);
    gpu_close();
    return test_result();
}
