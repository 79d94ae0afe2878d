/* host_cache.c: adds and forgets units of host memory.
 *
 * A unit can change from host to device memory only if it is unmapped in between, and the hooks report
 * that. A query that runs at that time may have seen the state before it: host_cache_forget therefore
 * increments `forgotten` before it clears entries, and host_cache_add compares it after it has stored its
 * entry. One of the two sees the other (both orders are sequentially consistent), so that no outdated
 * entry remains.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/host_cache.h"

uint64_t host_cache_begin(const struct host_cache *cache)
{
    return __atomic_load_n(&cache->forgotten, __ATOMIC_SEQ_CST);
}

void host_cache_add(struct host_cache *cache, uintptr_t address, uint64_t ticket)
{
    const uint64_t unit = host_cache_unit(address);
    uint64_t *entry = &cache->units[unit % HOST_CACHE_ENTRIES];
    __atomic_store_n(entry, unit, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&cache->forgotten, __ATOMIC_SEQ_CST) != ticket)
        __atomic_store_n(entry, 0, __ATOMIC_SEQ_CST);
}

void host_cache_forget(struct host_cache *cache, uintptr_t start, size_t size)
{
    if (size == 0)
        return;
    const uint64_t first = host_cache_unit(start), last = host_cache_unit(start + (size - 1));
    __atomic_add_fetch(&cache->forgotten, 1, __ATOMIC_SEQ_CST);
    for (size_t i = 0; i < HOST_CACHE_ENTRIES; i++) {
        const uint64_t unit = __atomic_load_n(&cache->units[i], __ATOMIC_RELAXED);
        if (unit >= first && unit <= last)
            __atomic_store_n(&cache->units[i], 0, __ATOMIC_SEQ_CST);
    }
}
