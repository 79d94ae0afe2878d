/* test_pace.c: what is recorded of the speed of links: messages alone, in a window, beside others, of several sizes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/pace.h"
#include "test.h"

enum { KIB = 1024 };

static struct paces all;
static uint32_t firsts[8];

static void note(uint32_t rank, enum pace_way way, uint64_t bytes, uint64_t began, uint64_t moved,
                 uint64_t now)
{
    const struct pace who = {.rank = rank, .way = (uint8_t)way};
    pace_record_transfer(&all, &firsts[rank], &who, bytes, (struct pace_mark){.began = began, .moved = moved},
                         now);
}

static struct pace *of(uint32_t rank)
{
    return paces_get(&all, firsts[rank] - 1);
}

static void forget(void)
{
    paces_free(&all);
    for (int i = 0; i < 8; i++)
        firsts[i] = 0;
}

/* Single messages with pauses between them: each is a measurement, and the fastest one is used. */
static void alone(void)
{
    unsigned class = 9;
    note(1, PACE_IN, 64 * KIB, 1000, 0, 3000);
    note(1, PACE_IN, 64 * KIB, 5000, 64 * KIB, 6000);
    note(1, PACE_IN, 64 * KIB, 9000, 128 * KIB, 19000);
    pace_finish_run(of(1));
    const struct pace_class *c = pace_busiest_class(of(1), &class);
    EXPECT(c && class == 0);
    EXPECT_EQ(c->messages, 3);
    EXPECT_EQ(c->runs, 3);
    EXPECT_EQ(c->best, 1000);
    EXPECT_EQ(c->ns, 2000 + 1000 + 10000);
    EXPECT_EQ(c->bytes, 3 * 64 * KIB);
    EXPECT_EQ(pace_export_word(of(1), 0, 0), 1);
    EXPECT_EQ(pace_export_word(of(1), 0, 5), 1000);
    EXPECT_EQ(pace_export_word(of(1), 1, 2), 0);
    forget();
}

/* Four messages at once on one wire share their time, and none of them counts as slow. */
static void window(void)
{
    for (uint64_t i = 0; i < 4; i++)
        note(1, PACE_OUT, 64 * KIB, 1000, 0, 1000 + 500 * (i + 1));
    pace_finish_run(of(1));
    EXPECT_EQ(of(1)->classes[0].runs, 1);
    EXPECT_EQ(of(1)->classes[0].best, 500);
    EXPECT_EQ(of(1)->classes[0].ns, 2000);
    forget();
}

/* Two links through one port: what the other carried meanwhile is not held against either. */
static void shared_port(void)
{
    for (uint64_t i = 0; i < 8; i++) {
        const uint64_t at = 1000 + 10000 * i, moved = i * 128 * KIB;
        note(1, PACE_IN, 64 * KIB, at, moved, at + 2000);
        note(2, PACE_IN, 64 * KIB, at, moved, at + 2000);
    }
    pace_finish_run(of(1));
    pace_finish_run(of(2));
    EXPECT_EQ(of(2)->classes[0].best, 1000);
    EXPECT_EQ(of(1)->classes[0].best,
              2000); /* first to arrive, before the other was there: the unfairness is bounded */
    forget();
}

/* Bytes that other rails carry after the end of a run do not count for it. */
static void later(void)
{
    note(1, PACE_IN, 64 * KIB, 1000, 0, 2000);
    note(2, PACE_IN, 64 * KIB, 3000, 64 * KIB, 4000);
    note(1, PACE_IN, 64 * KIB, 8000, 128 * KIB, 9000);
    pace_finish_run(of(1));
    EXPECT_EQ(of(1)->classes[0].best, 1000);
    forget();
}

static void sizes_and_keys(void)
{
    unsigned class = 9;
    note(1, PACE_IN, PACE_LEAST - 1, 1000, 0, 2000);
    EXPECT_EQ(all.count, 0);
    note(1, PACE_IN, 64 * KIB, 0, 0, 2000);
    EXPECT_EQ(all.count, 0); /* not measured */
    note(1, PACE_IN, 256 * KIB, 1000, 0, 2000);
    note(1, PACE_IN, 4096 * KIB, 3000, 0, 9000);
    note(1, PACE_OUT, 64 * KIB, 9000, 0, 9500);
    EXPECT_EQ(all.count, 2); /* a record for each direction */
    struct pace *in = paces_get(&all, 0);
    pace_finish_run(in);
    EXPECT(pace_busiest_class(in, &class) == &in->classes[2] && class == 2);
    EXPECT_EQ(in->classes[1].messages, 1);
    const struct pace rail = {.rank = 1, .rail = 3, .way = PACE_IN};
    pace_record_transfer(&all, &firsts[1], &rail, 64 * KIB, (struct pace_mark){.began = 1}, 2);
    EXPECT_EQ(all.count, 3); /* ... and for each rail */
    EXPECT_EQ(paces_get(&all, 2)->rail, 3);
    forget();
}

/* Records stay where they are, however many come. */
static void many(void)
{
    static uint32_t heads[5000];
    const struct pace who = {.rank = 0, .way = PACE_IN};
    const struct pace_mark mark = {.began = 1};
    pace_record_transfer(&all, &heads[0], &who, 64 * KIB, mark, 2);
    const struct pace *first = paces_get(&all, 0);
    for (uint32_t r = 1; r < 5000; r++) {
        const struct pace other = {.rank = r, .way = PACE_IN};
        pace_record_transfer(&all, &heads[r], &other, 64 * KIB, mark, 2);
    }
    EXPECT_EQ(all.count, 5000);
    EXPECT(paces_get(&all, 0) == first);
    for (uint32_t r = 0; r < 5000; r++)
        EXPECT_EQ(paces_get(&all, heads[r] - 1)->rank, r);
    forget();
}

/* A stream without pauses is measured in parts: the fastest part counts. */
static void stream(void)
{
    uint64_t at = 1000, moved = 0;
    for (int i = 0; i < 64; i++) {
        const uint64_t took = i < 32 ? 4000 : 1000;
        note(1, PACE_IN, 1024 * KIB, at, moved, at + took);
        at += took;
        moved += 1024 * KIB;
    }
    pace_finish_run(of(1));
    EXPECT(of(1)->classes[1].runs > 4);
    EXPECT_EQ(of(1)->classes[1].best, 1000 / 16);
    forget();
}

/* Peers that come and go: the records of those that are gone are empty, and serve the next. */
static void gone(void)
{
    unsigned class;
    note(2, PACE_IN, 64 * KIB, 1000, 0, 2000);
    for (int i = 0; i < 100; i++) {
        note(1, PACE_IN, 64 * KIB, 3000, all.moved[0][PACE_IN], 4000);
        note(1, PACE_OUT, 64 * KIB, 3000, all.moved[0][PACE_OUT], 5000);
        struct pace *last = of(1);
        pace_finish_run(last);
        EXPECT_EQ(last->classes[0].best, 2000);
        EXPECT_EQ(last->classes[0].messages, 1);
        paces_forget(&all, &firsts[1]);
        EXPECT_EQ(firsts[1], 0);
        EXPECT(!pace_busiest_class(last, &class));
        EXPECT_EQ(pace_export_word(last, 0, 5), 0);
    }
    EXPECT_EQ(all.count, 3);
    pace_finish_run(of(2));
    EXPECT_EQ(of(2)->classes[0].best, 1000);
    forget();
}

int main(void)
{
    alone();
    window();
    shared_port();
    later();
    sizes_and_keys();
    stream();
    many();
    gone();
    return test_result();
}
