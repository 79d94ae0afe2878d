/* memory.c: computes the memory that a process registers for messages and the adapter's queues.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include "net/ib/policy/posted.h"

const char *const memory_scheme_names[MEMORY_SCHEMES] = {
    [MEMORY_STATIC] = "static",           [MEMORY_ON_DEMAND] = "on demand",  [MEMORY_RINGS] = "and rings",
    [MEMORY_RINGS_ALL] = "rings for all", [MEMORY_SHARED] = "shared queues",
};

/* send_entry: a send work request with two scatter/gather entries and inline data; receive_entry: a
 * receive work request with one scatter/gather entry; both rounded as current adapters do. */
const struct memory_rules memory_presets = {.buffers = 8,
                                            .frame = 32 * 1024,
                                            .small = 2048,
                                            .factor = 16,
                                            .base = 64,
                                            .slots = 64,
                                            .rings = 16,
                                            .slot = 2048,
                                            .send_depth = 256,
                                            .buffers_max = 128,
                                            .send_entry = 128,
                                            .receive_entry = 16};

enum {
    FRAME_HEAD = 64,        /* header of a frame, rounded to a cache line */
    HELLO_CHUNKS = 2,       /* chunks for handshakes, for any number of peers */
    BELL_BYTES = CACHE_LINE /* memory for a peer's ring credits */
};

/* Bytes of memory for `buffers` buffers of `size` bytes; buffers are allocated in whole chunks. */
static double memory_pool_bytes(double buffers, size_t size)
{
    const size_t each = posted_chunk_buffers(size);
    const double chunks = (double)(uint64_t)((buffers + (double)each - 1) / (double)each);
    return chunks * (double)posted_chunk_bytes(size);
}

void memory_compute(const struct memory_rules *r, enum memory_scheme scheme, uint32_t ranks,
                    uint32_t partners, struct memory_use *out)
{
    const size_t frame = ALIGN_UP(r->frame + FRAME_HEAD, CACHE_LINE);
    const double connections = scheme == MEMORY_STATIC ? ranks - 1.0 : MIN(partners, ranks - 1);
    *out = (struct memory_use){.connections = connections};
    out->frames = (double)HELLO_CHUNKS * POSTED_CHUNK + memory_pool_bytes(connections, BELL_BYTES);
    if (scheme == MEMORY_SHARED) {
        const uint32_t each = posted_shared_buffers(ranks, r->factor, r->base);
        out->frames += memory_pool_bytes(each, r->small) + memory_pool_bytes(each, frame);
        out->queue_pairs = 2 * connections;
        out->queues =
            out->queue_pairs * r->send_depth * (double)r->send_entry + 2.0 * each * (double)r->receive_entry;
        return;
    }
    out->frames += memory_pool_bytes(connections * posted_connection_buffers(r->buffers), frame);
    if (scheme == MEMORY_RINGS || scheme == MEMORY_RINGS_ALL) {
        const double rings = scheme == MEMORY_RINGS ? MIN(connections, r->rings) : connections;
        out->frames += memory_pool_bytes(
            2 * rings, r->slots * r->slot); /* receive ring and send copy of the peer's ring */
    }
    out->queue_pairs = connections;
    out->queues = connections * (r->send_depth * (double)r->send_entry +
                                 (r->buffers_max + POSTED_SPARE) * (double)r->receive_entry);
}
