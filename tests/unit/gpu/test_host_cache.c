/* test_host_cache.c: units of host memory are remembered, forgotten when they are unmapped, and not added by a query that began
 * before that.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/host_cache.h"

#include "test.h"

#define UNIT ((uintptr_t)1 << HOST_CACHE_UNIT_BITS)

static void host_cache_host_cache_add(struct host_cache *c, uintptr_t address)
{
    host_cache_add(c, address, host_cache_begin(c));
}

static void remembers_units(void)
{
    struct host_cache c = {0};
    EXPECT(!host_cache_has(&c, 5 * UNIT));
    host_cache_host_cache_add(&c, 5 * UNIT + 77);
    EXPECT(host_cache_has(&c, 5 * UNIT));
    EXPECT(host_cache_has(&c, 6 * UNIT - 1));
    EXPECT(!host_cache_has(&c, 6 * UNIT));
    EXPECT(!host_cache_has(&c, 4 * UNIT));
    /* The same entry: the newer one stays. */
    host_cache_host_cache_add(&c, (5 + HOST_CACHE_ENTRIES) * UNIT);
    EXPECT(!host_cache_has(&c, 5 * UNIT));
    EXPECT(host_cache_has(&c, (5 + HOST_CACHE_ENTRIES) * UNIT));
}

static void address_zero_is_never_known(void)
{
    struct host_cache c = {0};
    EXPECT(!host_cache_has(&c, 0));
    host_cache_host_cache_add(&c, 0);
    EXPECT(!host_cache_has(&c, 0));
}

static void forgets_ranges(void)
{
    struct host_cache c = {0};
    for (uintptr_t i = 1; i <= 9; i++)
        host_cache_host_cache_add(&c, i * UNIT);
    host_cache_forget(&c, 3 * UNIT + 5, 0);
    EXPECT(host_cache_has(&c, 3 * UNIT));
    host_cache_forget(&c, 3 * UNIT + 5, UNIT); /* touches units 3 and 4 */
    for (uintptr_t i = 1; i <= 9; i++)
        EXPECT_EQ(host_cache_has(&c, i * UNIT), i != 3 && i != 4);
    host_cache_forget(&c, 0, SIZE_MAX); /* nothing is known about which memory goes */
    for (uintptr_t i = 1; i <= 9; i++)
        EXPECT(!host_cache_has(&c, i * UNIT));
}

static void outdated_queries_add_nothing(void)
{
    struct host_cache c = {0};
    const uint64_t ticket = host_cache_begin(&c);
    host_cache_forget(&c, 5 * UNIT, UNIT);
    host_cache_add(&c, 5 * UNIT, ticket);
    EXPECT(!host_cache_has(&c, 5 * UNIT));
}

int main(void)
{
    TEST_RUN(remembers_units);
    TEST_RUN(address_zero_is_never_known);
    TEST_RUN(forgets_ranges);
    TEST_RUN(outdated_queries_add_nothing);
    return test_result();
}
