/* test_pace.c: the recorded speed of links, from single messages, concurrent messages, streams, and
 * traffic on shared ports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/pace.h"
#include "test.h"

enum { KIB = 1024 };

static struct paces all_paces;
static uint32_t first_pace[8];

static void record_transfer(uint32_t rank, enum pace_direction direction, uint64_t bytes, uint64_t began,
                            uint64_t moved, uint64_t now)
{
    const struct pace who = {.rank = rank, .direction = (uint8_t)direction};
    pace_record_transfer(&all_paces, &first_pace[rank], &who, bytes,
                         (struct pace_mark){.began = began, .moved = moved}, now);
}

static struct pace *find_pace(uint32_t rank)
{
    return paces_get(&all_paces, first_pace[rank] - 1);
}

static void free_paces(void)
{
    paces_free(&all_paces);
    for (int i = 0; i < 8; i++)
        first_pace[i] = 0;
}

/* Single messages with pauses between them: each is a measurement, and the fastest one is used. */
static void test_single_messages(void)
{
    unsigned class = 9;
    record_transfer(1, PACE_IN, 64 * KIB, 1000, 0, 3000);
    record_transfer(1, PACE_IN, 64 * KIB, 5000, 64 * KIB, 6000);
    record_transfer(1, PACE_IN, 64 * KIB, 9000, 128 * KIB, 19000);
    pace_finish_run(find_pace(1));
    const struct pace_class *c = pace_busiest_class(find_pace(1), &class);
    EXPECT(c && class == 0);
    EXPECT_EQ(c->messages, 3);
    EXPECT_EQ(c->runs, 3);
    EXPECT_EQ(c->best, 1000);
    EXPECT_EQ(c->ns, 2000 + 1000 + 10000);
    EXPECT_EQ(c->bytes, 3 * 64 * KIB);
    EXPECT_EQ(pace_export_word(find_pace(1), 0, 0), 1);
    EXPECT_EQ(pace_export_word(find_pace(1), 0, 5), 1000);
    EXPECT_EQ(pace_export_word(find_pace(1), 1, 2), 0);
    free_paces();
}

/* Four messages at once on one wire share their time, and none of them counts as slow. */
static void test_concurrent_messages(void)
{
    for (uint64_t i = 0; i < 4; i++)
        record_transfer(1, PACE_OUT, 64 * KIB, 1000, 0, 1000 + 500 * (i + 1));
    pace_finish_run(find_pace(1));
    EXPECT_EQ(find_pace(1)->classes[0].runs, 1);
    EXPECT_EQ(find_pace(1)->classes[0].best, 500);
    EXPECT_EQ(find_pace(1)->classes[0].ns, 2000);
    free_paces();
}

/* Two links through one port: the bytes of the other link do not lower the speed of either. */
static void test_shared_port(void)
{
    for (uint64_t i = 0; i < 8; i++) {
        const uint64_t at = 1000 + 10000 * i, moved = i * 128 * KIB;
        record_transfer(1, PACE_IN, 64 * KIB, at, moved, at + 2000);
        record_transfer(2, PACE_IN, 64 * KIB, at, moved, at + 2000);
    }
    pace_finish_run(find_pace(1));
    pace_finish_run(find_pace(2));
    EXPECT_EQ(find_pace(2)->classes[0].best, 1000);
    /* The first message was measured before the other link's bytes were known; the error is bounded. */
    EXPECT_EQ(find_pace(1)->classes[0].best, 2000);
    free_paces();
}

/* Bytes that other rails carry after the end of a run do not count for it. */
static void test_bytes_after_run_do_not_count(void)
{
    record_transfer(1, PACE_IN, 64 * KIB, 1000, 0, 2000);
    record_transfer(2, PACE_IN, 64 * KIB, 3000, 64 * KIB, 4000);
    record_transfer(1, PACE_IN, 64 * KIB, 8000, 128 * KIB, 9000);
    pace_finish_run(find_pace(1));
    EXPECT_EQ(find_pace(1)->classes[0].best, 1000);
    free_paces();
}

static void test_size_classes_and_keys(void)
{
    unsigned class = 9;
    record_transfer(1, PACE_IN, PACE_LEAST - 1, 1000, 0, 2000);
    EXPECT_EQ(all_paces.count, 0);
    record_transfer(1, PACE_IN, 64 * KIB, 0, 0, 2000);
    EXPECT_EQ(all_paces.count, 0); /* too small to be measured */
    record_transfer(1, PACE_IN, 256 * KIB, 1000, 0, 2000);
    record_transfer(1, PACE_IN, 4096 * KIB, 3000, 0, 9000);
    record_transfer(1, PACE_OUT, 64 * KIB, 9000, 0, 9500);
    EXPECT_EQ(all_paces.count, 2); /* a record for each direction */
    struct pace *in = paces_get(&all_paces, 0);
    pace_finish_run(in);
    EXPECT(pace_busiest_class(in, &class) == &in->classes[2] && class == 2);
    EXPECT_EQ(in->classes[1].messages, 1);
    const struct pace rail = {.rank = 1, .rail = 3, .direction = PACE_IN};
    pace_record_transfer(&all_paces, &first_pace[1], &rail, 64 * KIB, (struct pace_mark){.began = 1}, 2);
    EXPECT_EQ(all_paces.count, 3); /* a further record for each rail */
    EXPECT_EQ(paces_get(&all_paces, 2)->rail, 3);
    free_paces();
}

/* The addresses of records do not change when more are added. */
static void test_records_do_not_move(void)
{
    static uint32_t heads[5000];
    const struct pace who = {.rank = 0, .direction = PACE_IN};
    const struct pace_mark mark = {.began = 1};
    pace_record_transfer(&all_paces, &heads[0], &who, 64 * KIB, mark, 2);
    const struct pace *first = paces_get(&all_paces, 0);
    for (uint32_t r = 1; r < 5000; r++) {
        const struct pace other = {.rank = r, .direction = PACE_IN};
        pace_record_transfer(&all_paces, &heads[r], &other, 64 * KIB, mark, 2);
    }
    EXPECT_EQ(all_paces.count, 5000);
    EXPECT(paces_get(&all_paces, 0) == first);
    for (uint32_t r = 0; r < 5000; r++)
        EXPECT_EQ(paces_get(&all_paces, heads[r] - 1)->rank, r);
    free_paces();
}

/* A stream without pauses is measured in parts: the fastest part counts. */
static void test_continuous_stream(void)
{
    uint64_t at = 1000, moved = 0;
    for (int i = 0; i < 64; i++) {
        const uint64_t took = i < 32 ? 4000 : 1000;
        record_transfer(1, PACE_IN, 1024 * KIB, at, moved, at + took);
        at += took;
        moved += 1024 * KIB;
    }
    pace_finish_run(find_pace(1));
    EXPECT(find_pace(1)->classes[1].runs > 4);
    EXPECT_EQ(find_pace(1)->classes[1].best, 1000 / 16);
    free_paces();
}

/* Records of departed peers are cleared and reused for new peers. */
static void test_departed_peers_are_reused(void)
{
    unsigned class;
    record_transfer(2, PACE_IN, 64 * KIB, 1000, 0, 2000);
    for (int i = 0; i < 100; i++) {
        record_transfer(1, PACE_IN, 64 * KIB, 3000, all_paces.moved[0][PACE_IN], 4000);
        record_transfer(1, PACE_OUT, 64 * KIB, 3000, all_paces.moved[0][PACE_OUT], 5000);
        struct pace *last = find_pace(1);
        pace_finish_run(last);
        EXPECT_EQ(last->classes[0].best, 2000);
        EXPECT_EQ(last->classes[0].messages, 1);
        paces_forget(&all_paces, &first_pace[1]);
        EXPECT_EQ(first_pace[1], 0);
        EXPECT(!pace_busiest_class(last, &class));
        EXPECT_EQ(pace_export_word(last, 0, 5), 0);
    }
    EXPECT_EQ(all_paces.count, 3);
    pace_finish_run(find_pace(2));
    EXPECT_EQ(find_pace(2)->classes[0].best, 1000);
    free_paces();
}

int main(void)
{
    test_single_messages();
    test_concurrent_messages();
    test_shared_port();
    test_bytes_after_run_do_not_count();
    test_size_classes_and_keys();
    test_continuous_stream();
    test_records_do_not_move();
    test_departed_peers_are_reused();
    return test_result();
}
