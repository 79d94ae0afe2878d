/* test_group_memory.c: a multicast group that runs out of memory while it is opened: each allocation
 * fails once; the error is returned, and no memory or resource remains.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/err.h"
#include "net/mcast_group.h"
#include "test.h"

static int calls_until_failure; /* 0: none fails */

/* The linker replaces the library's calls of calloc (--wrap). */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    if (calls_until_failure > 0 && --calls_until_failure == 0)
        return NULL;
    return __real_calloc(n, size);
}

static int opened, closed;

static int fake_open(struct transport *t, uint64_t group, uint32_t receives, uint32_t slots, void **member)
{
    (void)t, (void)group, (void)receives, (void)slots;
    opened++;
    *member = &opened;
    return 0;
}

static void fake_close(void *member)
{
    (void)member;
    closed++;
}

static const struct transport_multicast fake_multicast = {.open = fake_open, .close = fake_close};

static void test_each_allocation_failure(void)
{
    struct net net = {.rank = 0};
    struct transport t = {.net = &net, .multicast = &fake_multicast};
    const struct net_group_setup setup = {
        .id = 7, .members = 4, .me = 0, .collectors = 1, .rules = net_group_make_rules(8, 1, false, 1000)};
    int failures = 0;
    struct net_group *g = NULL;
    list_init(&net.groups);
    list_init(&net.hooks);
    list_init(&net.group_notes);
    for (int k = 1; !g && k < 20; k++) {
        calls_until_failure = k;
        const int rc = net_group_open(&net, &t, &setup, &g);
        const bool failed = calls_until_failure == 0;
        calls_until_failure = 0;
        EXPECT_EQ(rc, failed ? MPI_ERR_NO_MEM : 0);
        EXPECT_EQ(failed, g == NULL);
        failures += failed;
    }
    EXPECT(failures >= 5);
    EXPECT_EQ(opened, 1);
    if (g)
        net_group_close(g);
    EXPECT_EQ(closed, 1);
    EXPECT(list_empty(&net.groups));
}

int main(void)
{
    TEST_RUN(test_each_allocation_failure);
    return test_result();
}
