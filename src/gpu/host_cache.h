/* host_cache.h: remembers which 2 MiB units of the address space hold host memory, so that the GPU library
 * need not be queried for each message. GPU allocations occupy whole units: CUDA reserves and maps device
 * memory in multiples of 2 MiB (docs/gpu.md).
 *
 * Any thread may use it; host_cache_forget is async-signal-safe.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_HOST_CACHE_H
#define FP_GPU_HOST_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_CACHE_UNIT_BITS 21
#define HOST_CACHE_ENTRIES   256 /* direct-mapped: covers 512 MiB of neighbouring addresses */

/* Zero-initialised: empty. An entry is the number of a unit; unit 0 (address 0) holds no buffer and means
 * "empty". */
struct host_cache {
    uint64_t units[HOST_CACHE_ENTRIES];
    uint64_t forgotten; /* incremented by host_cache_forget */
};

static inline uint64_t host_cache_unit(uintptr_t address)
{
    return (uint64_t)address >> HOST_CACHE_UNIT_BITS;
}

static inline bool host_cache_has(const struct host_cache *cache, uintptr_t address)
{
    const uint64_t unit = host_cache_unit(address);
    return unit != 0 && __atomic_load_n(&cache->units[unit % HOST_CACHE_ENTRIES], __ATOMIC_RELAXED) == unit;
}

/* Called before a query of the GPU library; returns a ticket for host_cache_add. */
uint64_t host_cache_begin(const struct host_cache *cache);

/* Records that the query found host memory, unless memory was forgotten after host_cache_begin. */
void host_cache_add(struct host_cache *cache, uintptr_t address, uint64_t ticket);

/* Removes a range that is about to be unmapped. */
void host_cache_forget(struct host_cache *cache, uintptr_t start, size_t size);

#endif
