/* test_host_cache.c: the cache of host memory units: units are found until they are unmapped, and a query
 * that began before the unmapping does not add them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/host_cache.h"

#include "test.h"

#define UNIT ((uintptr_t)1 << HOST_CACHE_UNIT_BITS)

static void cache_unit(struct host_cache *c, uintptr_t address)
{
    host_cache_add(c, address, host_cache_begin(c));
}

static void test_units_are_found(void)
{
    struct host_cache c = {0};
    EXPECT(!host_cache_has(&c, 5 * UNIT));
    cache_unit(&c, 5 * UNIT + 77);
    EXPECT(host_cache_has(&c, 5 * UNIT));
    EXPECT(host_cache_has(&c, 6 * UNIT - 1));
    EXPECT(!host_cache_has(&c, 6 * UNIT));
    EXPECT(!host_cache_has(&c, 4 * UNIT));
    /* Both units map to one cache entry: the newer unit remains. */
    cache_unit(&c, (5 + HOST_CACHE_ENTRIES) * UNIT);
    EXPECT(!host_cache_has(&c, 5 * UNIT));
    EXPECT(host_cache_has(&c, (5 + HOST_CACHE_ENTRIES) * UNIT));
}

static void test_address_zero_is_never_cached(void)
{
    struct host_cache c = {0};
    EXPECT(!host_cache_has(&c, 0));
    cache_unit(&c, 0);
    EXPECT(!host_cache_has(&c, 0));
}

static void test_ranges_are_forgotten(void)
{
    struct host_cache c = {0};
    for (uintptr_t i = 1; i <= 9; i++)
        cache_unit(&c, i * UNIT);
    host_cache_forget(&c, 3 * UNIT + 5, 0);
    EXPECT(host_cache_has(&c, 3 * UNIT));
    host_cache_forget(&c, 3 * UNIT + 5, UNIT); /* touches units 3 and 4 */
    for (uintptr_t i = 1; i <= 9; i++)
        EXPECT_EQ(host_cache_has(&c, i * UNIT), i != 3 && i != 4);
    host_cache_forget(&c, 0, SIZE_MAX); /* any memory may have been unmapped */
    for (uintptr_t i = 1; i <= 9; i++)
        EXPECT(!host_cache_has(&c, i * UNIT));
}

static void test_outdated_queries_add_nothing(void)
{
    struct host_cache c = {0};
    const uint64_t ticket = host_cache_begin(&c);
    host_cache_forget(&c, 5 * UNIT, UNIT);
    host_cache_add(&c, 5 * UNIT, ticket);
    EXPECT(!host_cache_has(&c, 5 * UNIT));
}

int main(void)
{
    TEST_RUN(test_units_are_found);
    TEST_RUN(test_address_zero_is_never_cached);
    TEST_RUN(test_ranges_are_forgotten);
    TEST_RUN(test_outdated_queries_add_nothing);
    return test_result();
}
