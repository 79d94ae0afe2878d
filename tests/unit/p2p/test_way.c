/* test_way.c: the choice between the two ways of a large message: both are tried, the cheaper wins in its
 * size class, and a change of costs is noticed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/way.h"

#include "test.h"

/* Sends n messages at these costs (ns for 64 KiB); returns how many went by reading. */
static int run(struct way_table *t, uint64_t bytes, int n, uint64_t copy_ns, uint64_t get_ns)
{
    int gets = 0;
    for (int i = 0; i < n; i++) {
        enum way way = way_pick(t, bytes, WAY_PIECES, WAY_READ);
        gets += way == WAY_READ;
        way_learn(t, way, bytes, (way == WAY_READ ? get_ns : copy_ns) * bytes / 65536);
    }
    return gets;
}

static void takes_the_cheaper(void)
{
    struct way_table t = {0};
    EXPECT(run(&t, 64 << 10, 1000, 5000, 9000) < 40);
    EXPECT(run(&t, 4 << 20, 1000, 9000, 5000) > 960); /* another class decides for itself */
    EXPECT(run(&t, 64 << 10, 1000, 5000, 9000) < 40);
}

static void changes_its_mind(void)
{
    struct way_table t = {0};
    run(&t, 1 << 20, 1000, 5000, 9000);
    run(&t, 1 << 20, 3000, 20000, 9000); /* copying became dear */
    EXPECT(run(&t, 1 << 20, 1000, 20000, 9000) > 960);
    run(&t, 1 << 20, 20000, 20000, 90000); /* and reading dearer */
    EXPECT(run(&t, 1 << 20, 1000, 20000, 90000) < 40);
}

static void stays_where_there_is_little_to_win(void)
{
    struct way_table t = {0};
    EXPECT(run(&t, 1 << 20, 1000, 5000, 4800) < 40);
}

static void odd_values(void)
{
    struct way_table t = {0};
    for (int i = 0; i < 100; i++) {
        way_learn(&t, WAY_PIECES, 0, 1000);
        way_learn(&t, WAY_READ, 1, UINT32_MAX);
        way_learn(&t, WAY_READ, UINT64_MAX, 1);
        enum way way = way_pick(&t, 0, WAY_PIECES, WAY_READ);
        EXPECT(way == WAY_PIECES || way == WAY_READ);
        way = way_pick(&t, UINT64_MAX, WAY_PIECES, WAY_READ);
        EXPECT(way == WAY_PIECES || way == WAY_READ);
    }
}

int main(void)
{
    TEST_RUN(takes_the_cheaper);
    TEST_RUN(changes_its_mind);
    TEST_RUN(stays_where_there_is_little_to_win);
    TEST_RUN(odd_values);
    return test_result();
}
