/* test_match.c: compares the match tables with a simple model (two arrays) under random posts, arrivals,
 * probes and cancels with every kind of wildcard; and growth to many thousands of entries.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/match.h"

#include <stdlib.h>

#include "random.h"
#include "test.h"

enum { SLOTS = 2000 };

/* The model: entries in order of arrival; `live` marks the entries that are not matched yet. */
struct model {
    struct match_entry entries[SLOTS];
    bool live[SLOTS];
    int used;
};

static struct model receives, messages;
static uint64_t order;
static struct match_entry *model_add(struct model *m, struct envelope env)
{
    struct match_entry *e = &m->entries[m->used];
    m->live[m->used++] = true;
    *e = (struct match_entry){.env = env, .order = order++};
    return e;
}

static void model_remove(struct model *m, const struct match_entry *e)
{
    m->live[e - m->entries] = false;
}

static struct match_entry *model_match_message(struct envelope message)
{
    for (int i = 0; i < receives.used; i++)
        if (receives.live[i] && envelope_matches(receives.entries[i].env, message))
            return &receives.entries[i];
    return NULL;
}

static struct match_entry *model_match_receive(struct envelope receive)
{
    for (int i = 0; i < messages.used; i++)
        if (messages.live[i] && envelope_matches(receive, messages.entries[i].env))
            return &messages.entries[i];
    return NULL;
}

static struct envelope random_envelope(bool wildcards, uint32_t variety)
{
    struct envelope env = {.context = random_below(3) * 2,
                           .source = (int32_t)random_below(variety),
                           .tag = (int32_t)random_below(variety)};
    if (wildcards && random_below(4) == 0)
        env.source = MPI_ANY_SOURCE;
    if (wildcards && random_below(4) == 0)
        env.tag = MPI_ANY_TAG;
    return env;
}

static void post_receive(struct match_table *posted, struct match_table *unexpected, struct envelope env)
{
    struct match_entry *want = model_match_receive(env);
    struct match_entry *found = unexpected_find(unexpected, env);
    EXPECT(found == want);
    if (found) {
        unexpected_remove(unexpected, found);
        model_remove(&messages, found);
        return;
    }
    posted_add(posted, model_add(&receives, env));
}

static void deliver_message(struct match_table *posted, struct match_table *unexpected, struct envelope env)
{
    struct match_entry *want = model_match_message(env);
    struct match_entry *found = posted_find(posted, env);
    EXPECT(found == want);
    if (found) {
        EXPECT(found->posted);
        posted_remove(posted, found);
        EXPECT(!found->posted);
        model_remove(&receives, found);
        return;
    }
    unexpected_add(unexpected, model_add(&messages, env));
}

static void cancel_random_receive(struct match_table *posted)
{
    int i = receives.used ? (int)random_below((uint32_t)receives.used) : 0;
    if (i >= receives.used || !receives.live[i])
        return;
    posted_remove(posted, &receives.entries[i]);
    receives.live[i] = false;
}

/* `posts_of_ten`: of ten steps this number post a receive, the others deliver a message. Small values fill
 * the table of unexpected messages, large values the table of posted receives. */
static void run_random_walk(uint32_t with_seed, bool wildcards, uint32_t variety, uint32_t posts_of_ten)
{
    struct match_table posted, unexpected;
    random_seed = with_seed;
    receives.used = messages.used = 0;
    EXPECT_EQ(match_open(&posted), 0);
    EXPECT_EQ(match_open(&unexpected), 0);
    while (receives.used < SLOTS - 1 && messages.used < SLOTS - 1 && test_failures == 0 &&
           random_below(8000) != 0) {
        uint32_t step = random_below(10);
        if (random_below(50) == 0)
            cancel_random_receive(&posted);
        if (step < posts_of_ten)
            post_receive(&posted, &unexpected, random_envelope(wildcards, variety));
        else
            deliver_message(&posted, &unexpected, random_envelope(false, variety));
    }
    match_close(&posted);
    match_close(&unexpected);
}

static void test_random_walks(void)
{
    for (uint32_t s = 1; s <= 14; s++) {
        run_random_walk(s, true, 1 + s % 7, 5);
        run_random_walk(s + 1000, true, 40, 3 + s % 5);
        run_random_walk(s + 2000, false, 10, 5);
    }
}

/* The first wildcard receive is posted when many messages are waiting. */
static void test_late_wildcard(void)
{
    struct match_table posted, unexpected;
    receives.used = messages.used = 0;
    EXPECT_EQ(match_open(&posted), 0);
    EXPECT_EQ(match_open(&unexpected), 0);
    for (int i = 0; i < 1500; i++)
        deliver_message(&posted, &unexpected, (struct envelope){.source = i % 7, .tag = i % 3});
    for (int i = 0; i < 1000; i++)
        post_receive(
            &posted, &unexpected,
            (struct envelope){.source = i % 2 ? i % 7 : MPI_ANY_SOURCE, .tag = i % 5 ? MPI_ANY_TAG : i % 3});
    match_close(&posted);
    match_close(&unexpected);
}

/* A single receive stays outside the tables; a second receive inserts both in order. */
static void test_single_receive(void)
{
    struct match_table t;
    struct envelope env = {.source = 1, .tag = 2}, other = {.source = 1, .tag = 3};
    struct match_entry a = {.env = env, .order = 1}, b = {.env = env, .order = 2};
    EXPECT_EQ(match_open(&t), 0);
    EXPECT(posted_find(&t, env) == NULL);
    posted_add(&t, &a);
    EXPECT(t.lone == &a && posted_find(&t, env) == &a && posted_find(&t, other) == NULL);
    posted_add(&t, &b);
    EXPECT(t.lone == NULL && posted_find(&t, env) == &a);
    posted_remove(&t, &a);
    EXPECT(posted_find(&t, env) == &b);
    posted_add(&t, &a); /* b is in the table, so a is inserted too */
    EXPECT(t.lone == NULL && posted_find(&t, env) == &b);
    posted_remove(&t, &b);
    posted_remove(&t, &a);
    EXPECT(posted_find(&t, env) == NULL);
    posted_add(&t, &b);
    EXPECT(t.lone == &b);
    posted_remove(&t, &b);
    match_close(&t);
}

/* Many more entries than the initial size, matched in order, in reverse, and with one key for all. */
static void test_growth(void)
{
    enum { N = 50000 };
    struct match_table t;
    struct match_entry *e = calloc(N, sizeof(*e));
    EXPECT_EQ(match_open(&t), 0);
    for (int i = 0; i < N; i++) {
        e[i] = (struct match_entry){.env = {.context = 2, .source = i % 100, .tag = i / 100},
                                    .order = (uint64_t)i};
        posted_add(&t, &e[i]);
    }
    EXPECT(t.nbuckets > 10000);
    for (int i = N; i-- > 0;) {
        EXPECT(posted_find(&t, e[i].env) == &e[i]);
        posted_remove(&t, &e[i]);
    }
    for (int i = 0; i < 1000; i++) {
        e[i] = (struct match_entry){.env = {.context = 2}, .order = (uint64_t)i};
        unexpected_add(&t, &e[i]);
    }
    for (int i = 0; i < 1000; i++) {
        EXPECT(unexpected_find(&t, (struct envelope){.context = 2}) == &e[i]);
        unexpected_remove(&t, &e[i]);
    }
    EXPECT_EQ(t.count, 0);
    match_close(&t);
    free(e);
}

int main(void)
{
    TEST_RUN(test_single_receive);
    TEST_RUN(test_random_walks);
    TEST_RUN(test_late_wildcard);
    TEST_RUN(test_growth);
    return test_result();
}
