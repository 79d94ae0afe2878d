/* test_wait.c: waiting between processes: sleepers are woken by frames and by changed memory, never too late,
 * with a processor for each rank and with several ranks on one.
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

static void count_frame(void *ctx, struct peer *from, const struct frame_header *h, const void *payload,
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

/* A token goes round. Every wait is long enough to sleep, since the other ranks are slow or many. */
static void test_token(struct node *n)
{
    uint32_t me = n->boot.rank, size = n->boot.size;
    struct peer *next = NULL;
    n->net->deliver = count_frame;
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

struct look {
    _Atomic uint64_t *word;
    uint64_t want;
};

static bool word_is_there(void *arg)
{
    struct look *l = arg;
    return atomic_load_explicit(l->word, memory_order_acquire) == l->want;
}

static void memory_token(struct node *n)
{
    uint32_t me = n->boot.rank, size = n->boot.size, next = (me + 1) % size;
    struct flags *f = (struct flags *)n->net->area;
    for (uint64_t i = 1; i <= ROUNDS / size; i++) {
        struct look l = {.word = &f->word[me][0], .want = i};
        struct net_waiter w = {.ready = word_is_there, .arg = &l};
        if (me == 0) {
            atomic_store_explicit(&f->word[next][0], i, memory_order_release);
            net_wake_local_rank(n->net, next);
        }
        while (!word_is_there(&l))
            net_wait_step(n->net, &w);
        if (me != 0) {
            atomic_store_explicit(&f->word[next][0], i, memory_order_release);
            net_wake_local_rank(n->net, next);
        }
    }
}

static void wait_set(const char *name, const char *value)
{
    EXPECT_EQ(tunable_set(tunables_find(name), value, SOURCE_PROGRAM), 0);
}

/* SPIN_US=0 and no yields: every wait sleeps. */
static void wait_short_timeout(void)
{
    wait_set("SPIN_US", "0");
    wait_set("YIELDS", "0");
}

static void frames_two_ranks(void)
{
    node_run(2, test_token);
}

static void frames_many_ranks(void)
{
    node_run(8, test_token);
}

static void memory_two_ranks(void)
{
    node_run(2, memory_token);
}

static void memory_many_ranks(void)
{
    node_run(8, memory_token);
}

static void frames_one_processor(void)
{
    cpu_set_t before, one;
    sched_getaffinity(0, sizeof(before), &before);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof(one), &one);
    node_run(3, test_token);
    node_run(3, memory_token);
    sched_setaffinity(0, sizeof(before), &before);
}

/* A transport that reports an arrival every time and never delivers anything. */
static struct transport_ops refusing;
static int refusals;

static bool wait_refuse(struct transport *t)
{
    (void)t;
    if (++refusals == 1000)
        arrived = 1;
    return false;
}

static uint64_t wait_slept(void)
{
    for (size_t i = 0; i < counters_count(); i++)
        if (strcmp(counters_get(i)->name, "net_sleeps") == 0)
            return counters_get(i)->value;
    return 0;
}

static void test_refused(struct node *n)
{
    struct transport *t = n->net->transports[0];
    const struct transport_ops *before = t->ops;
    refusing = *before;
    refusing.arm = wait_refuse;
    t->ops = &refusing;
    arrived = refusals = 0;
    const uint64_t sleeps = wait_slept();
    net_wait(n->net, &arrived);
    EXPECT_EQ(refusals, 1000);
    EXPECT(wait_slept() - sleeps > 900); /* it is polite all the same */
    arrived = 0;
    t->ops = before;
}

static void one_that_may_not_sleep(void)
{
    node_run(1, test_refused);
}

int main(void)
{
    TEST_RUN(frames_two_ranks);
    TEST_RUN(frames_many_ranks);
    wait_short_timeout();
    TEST_RUN(frames_two_ranks);
    TEST_RUN(frames_many_ranks);
    TEST_RUN(memory_two_ranks);
    TEST_RUN(memory_many_ranks);
    TEST_RUN(frames_one_processor);
    TEST_RUN(one_that_may_not_sleep);
    return test_result();
}
