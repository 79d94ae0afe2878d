/* test_wait.c: waiting between processes: sleeping ranks are woken in time by frames and by changed
 * memory, with a processor for each rank and with several ranks on one processor.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "node.h"

#include <sched.h>
#include <string.h>

#include "base/counter.h"
#include "base/tunable.h"

enum { ROUNDS = 3000 };

static _Atomic int arrived;
static uint64_t expected_word;

static void record_frame(void *ctx, struct peer *from, const struct frame_header *h, const void *payload,
                         size_t len)
{
    (void)ctx, (void)from, (void)payload, (void)len;
    EXPECT_EQ(h->word, expected_word);
    arrived++;
}

static void send_word(struct peer *to, uint64_t word)
{
    struct frame_header h = {.kind = 1, .word = word};
    while (peer_send_now(to, &h, NULL, 0) != 0)
        net_progress(to->net);
}

/* Ranks pass a token around a ring. Other ranks are slow or many, so that waiting ranks sleep. */
static void pass_frame_token(struct node *n)
{
    uint32_t me = n->boot.rank, size = n->boot.size;
    struct peer *next = NULL;
    n->net->deliver = record_frame;
    EXPECT_EQ(net_peer(n->net, (me + 1) % size, &next), 0);
    for (uint64_t i = 0; i < ROUNDS / size && test_failures == 0; i++) {
        expected_word = i;
        if (me == 0)
            send_word(next, i);
        net_wait(n->net, &arrived);
        arrived = 0;
        if (me != 0)
            send_word(next, i);
    }
}

/* Ranks wait for words in shared memory, as collectives do. */
struct flags {
    _Alignas(64) _Atomic uint64_t word[NODE_MAX][8];
};

struct word_condition {
    _Atomic uint64_t *word;
    uint64_t want;
};

static bool word_has_arrived(void *arg)
{
    struct word_condition *l = arg;
    return atomic_load_explicit(l->word, memory_order_acquire) == l->want;
}

static void pass_memory_token(struct node *n)
{
    uint32_t me = n->boot.rank, size = n->boot.size, next = (me + 1) % size;
    struct flags *f = (struct flags *)n->net->area;
    for (uint64_t i = 1; i <= ROUNDS / size; i++) {
        struct word_condition l = {.word = &f->word[me][0], .want = i};
        struct net_waiter w = {.ready = word_has_arrived, .arg = &l};
        if (me == 0) {
            atomic_store_explicit(&f->word[next][0], i, memory_order_release);
            net_wake_local_rank(n->net, next);
        }
        while (!word_has_arrived(&l))
            net_wait_step(n->net, &w);
        if (me != 0) {
            atomic_store_explicit(&f->word[next][0], i, memory_order_release);
            net_wake_local_rank(n->net, next);
        }
    }
}

static void set_tunable(const char *name, const char *value)
{
    EXPECT_EQ(tunable_set(tunables_find(name), value, SOURCE_PROGRAM), 0);
}

/* SPIN_US=0 and no yields: every wait sleeps. */
static void disable_spinning(void)
{
    set_tunable("SPIN_US", "0");
    set_tunable("YIELDS", "0");
}

static void test_frames_two_ranks(void)
{
    node_run(2, pass_frame_token);
}

static void test_frames_many_ranks(void)
{
    node_run(8, pass_frame_token);
}

static void test_memory_two_ranks(void)
{
    node_run(2, pass_memory_token);
}

static void test_memory_many_ranks(void)
{
    node_run(8, pass_memory_token);
}

static void test_frames_one_processor(void)
{
    cpu_set_t before, one;
    sched_getaffinity(0, sizeof(before), &before);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof(one), &one);
    node_run(3, pass_frame_token);
    node_run(3, pass_memory_token);
    sched_setaffinity(0, sizeof(before), &before);
}

/* A transport that reports an arrival every time and never delivers anything. */
static struct transport_ops false_arrival_ops;
static int false_arrivals;

static bool report_false_arrival(struct transport *t)
{
    (void)t;
    if (++false_arrivals == 1000)
        arrived = 1;
    return false;
}

static uint64_t count_sleeps(void)
{
    for (size_t i = 0; i < counters_count(); i++)
        if (strcmp(counters_get(i)->name, "net_sleeps") == 0)
            return counters_get(i)->value;
    return 0;
}

static void wait_with_false_arrivals(struct node *n)
{
    struct transport *t = n->net->transports[0];
    const struct transport_ops *before = t->ops;
    false_arrival_ops = *before;
    false_arrival_ops.arm = report_false_arrival;
    t->ops = &false_arrival_ops;
    arrived = false_arrivals = 0;
    const uint64_t sleeps = count_sleeps();
    net_wait(n->net, &arrived);
    EXPECT_EQ(false_arrivals, 1000);
    EXPECT(count_sleeps() - sleeps > 900); /* the waiting rank sleeps nevertheless */
    arrived = 0;
    t->ops = before;
}

static void test_false_arrivals(void)
{
    node_run(1, wait_with_false_arrivals);
}

int main(void)
{
    TEST_RUN(test_frames_two_ranks);
    TEST_RUN(test_frames_many_ranks);
    disable_spinning();
    TEST_RUN(test_frames_two_ranks);
    TEST_RUN(test_frames_many_ranks);
    TEST_RUN(test_memory_two_ranks);
    TEST_RUN(test_memory_many_ranks);
    TEST_RUN(test_frames_one_processor);
    TEST_RUN(test_false_arrivals);
    return test_result();
}
