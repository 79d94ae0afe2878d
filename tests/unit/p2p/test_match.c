/* test_match.c: the match tables against a slow model (two plain lists), driven by random posts, arrivals,
 * probes and cancels with every kind of wildcard; and growth to many thousands of entries.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/match.h"

#include <stdlib.h>

#include "test.h"

enum { SLOTS = 2000 };

/* The model: entries in order of arrival; `live` marks those still there. */
struct model {
    struct match_entry entries[SLOTS];
    bool live[SLOTS];
    int used;
};

static struct model receives, messages;
static uint64_t order;
static uint32_t seed;

static uint32_t match_random_choice(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

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

static struct match_entry *oldest_receive(struct envelope message)
{
    for (int i = 0; i < receives.used; i++)
        if (receives.live[i] && envelope_matches(receives.entries[i].env, message))
            return &receives.entries[i];
    return NULL;
}

static struct match_entry *oldest_message(struct envelope receive)
{
    for (int i = 0; i < messages.used; i++)
        if (messages.live[i] && envelope_matches(receive, messages.entries[i].env))
            return &messages.entries[i];
    return NULL;
}

static struct envelope random_envelope(bool wildcards, uint32_t variety)
{
    struct envelope env = {.context = match_random_choice(3) * 2,
                           .source = (int32_t)match_random_choice(variety),
                           .tag = (int32_t)match_random_choice(variety)};
    if (wildcards && match_random_choice(4) == 0)
        env.source = MPI_ANY_SOURCE;
    if (wildcards && match_random_choice(4) == 0)
        env.tag = MPI_ANY_TAG;
    return env;
}

static void match_post(struct match_table *posted, struct match_table *unexpected, struct envelope env)
{
    struct match_entry *want = oldest_message(env);
    struct match_entry *found = unexpected_find(unexpected, env);
    EXPECT(found == want);
    if (found) {
        unexpected_remove(unexpected, found);
        model_remove(&messages, found);
        return;
    }
    posted_add(posted, model_add(&receives, env));
}

static void match_arrive(struct match_table *posted, struct match_table *unexpected, struct envelope env)
{
    struct match_entry *want = oldest_receive(env);
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

static void cancel_one(struct match_table *posted)
{
    int i = receives.used ? (int)match_random_choice((uint32_t)receives.used) : 0;
    if (i >= receives.used || !receives.live[i])
        return;
    posted_remove(posted, &receives.entries[i]);
    receives.live[i] = false;
}

/* `lean` is how many in ten steps post a receive: few fill the table of messages, many that of receives. */
static void match_walk(uint32_t with_seed, bool wildcards, uint32_t variety, uint32_t lean)
{
    struct match_table posted, unexpected;
    seed = with_seed;
    receives.used = messages.used = 0;
    EXPECT_EQ(match_open(&posted), 0);
    EXPECT_EQ(match_open(&unexpected), 0);
    while (receives.used < SLOTS - 1 && messages.used < SLOTS - 1 && test_failures == 0 &&
           match_random_choice(8000) != 0) {
        uint32_t step = match_random_choice(10);
        if (match_random_choice(50) == 0)
            cancel_one(&posted);
        if (step < lean)
            match_post(&posted, &unexpected, random_envelope(wildcards, variety));
        else
            match_arrive(&posted, &unexpected, random_envelope(false, variety));
    }
    match_close(&posted);
    match_close(&unexpected);
}

static void random_walks(void)
{
    for (uint32_t s = 1; s <= 14; s++) {
        match_walk(s, true, 1 + s % 7, 5);
        match_walk(s + 1000, true, 40, 3 + s % 5);
        match_walk(s + 2000, false, 10, 5);
    }
}

/* The first wildcard comes when many messages wait already. */
static void late_wildcard(void)
{
    struct match_table posted, unexpected;
    receives.used = messages.used = 0;
    EXPECT_EQ(match_open(&posted), 0);
    EXPECT_EQ(match_open(&unexpected), 0);
    for (int i = 0; i < 1500; i++)
        match_arrive(&posted, &unexpected, (struct envelope){.source = i % 7, .tag = i % 3});
    for (int i = 0; i < 1000; i++)
        match_post(
            &posted, &unexpected,
            (struct envelope){.source = i % 2 ? i % 7 : MPI_ANY_SOURCE, .tag = i % 5 ? MPI_ANY_TAG : i % 3});
    match_close(&posted);
    match_close(&unexpected);
}

/* One receive alone stays out of the tables; a second one brings both in, in order. */
static void lone_receive(void)
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
    posted_add(&t, &a); /* b hangs in the table: a joins it */
    EXPECT(t.lone == NULL && posted_find(&t, env) == &b);
    posted_remove(&t, &b);
    posted_remove(&t, &a);
    EXPECT(posted_find(&t, env) == NULL);
    posted_add(&t, &b);
    EXPECT(t.lone == &b);
    posted_remove(&t, &b);
    match_close(&t);
}

/* Far beyond the first size; in order, in reverse and with one key for all. */
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
    TEST_RUN(lone_receive);
    TEST_RUN(random_walks);
    TEST_RUN(late_wildcard);
    TEST_RUN(test_growth);
    return test_result();
}
