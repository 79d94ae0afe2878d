/* record.c: records the data that an operation moves: sizes, peers and buffers. A message counts at its sender;
 * a collective counts what a rank contributes, or receives if it contributes nothing. A persistent operation
 * is described once and counted at every start.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "api/inside.h"
#include "prof.h"

/* Cache of the sizes of predefined datatypes, which never change and have small handles in the standard
 * ABI. */
enum { KNOWN_TYPES = 1024 };
static int32_t known_size[KNOWN_TYPES]; /* size + 1; 0: not read yet. Racing threads write the same value. */

static uint64_t type_size(MPI_Datatype type)
{
    const uintptr_t handle = (uintptr_t)type;
    MPI_Count size = 0;
    if (handle < KNOWN_TYPES) {
        const int32_t known = __atomic_load_n(&known_size[handle], __ATOMIC_RELAXED);
        if (known)
            return (uint64_t)known - 1;
    }
    if (PMPI_Type_size_c(type, &size) != MPI_SUCCESS || size < 0)
        return 0;
    if (handle < KNOWN_TYPES && size < INT32_MAX)
        __atomic_store_n(&known_size[handle], (int32_t)size + 1, __ATOMIC_RELAXED);
    return (uint64_t)size;
}

/* Returns the address of the data; for MPI_BOTTOM the datatype contains the absolute address. */
static const void *note_data_address(const void *at, MPI_Datatype type)
{
    MPI_Count lb = 0, extent;
    if (at == MPI_BOTTOM)
        PMPI_Type_get_true_extent_c(type, &lb, &extent);
    return (const char *)at + lb;
}

struct prof_block prof_make_blocks(const void *at, MPI_Count count, MPI_Datatype type, MPI_Count times)
{
    if (at == MPI_IN_PLACE)
        return PROF_NOTHING;
    const uint64_t bytes = count > 0 && times > 0 ? (uint64_t)count * (uint64_t)times * type_size(type) : 0;
    return (struct prof_block){.at = bytes ? note_data_address(at, type) : at, .bytes = bytes, .given = true};
}

struct prof_block prof_make_block(const void *at, MPI_Count count, MPI_Datatype type)
{
    return prof_make_blocks(at, count, type, 1);
}

struct prof_block prof_sum_blocks(const void *at, const int *counts, MPI_Datatype type, int n)
{
    MPI_Count sum = 0;
    for (int i = 0; at != MPI_IN_PLACE && i < n; i++)
        sum += counts[i];
    return prof_make_block(at, sum, type);
}

struct prof_block prof_sum_blocks_c(const void *at, const MPI_Count *counts, MPI_Datatype type, int n)
{
    MPI_Count sum = 0;
    for (int i = 0; at != MPI_IN_PLACE && i < n; i++)
        sum += counts[i];
    return prof_make_block(at, sum, type);
}

struct prof_block prof_typed_blocks(const void *at, const int *counts, const MPI_Datatype *types, int n)
{
    struct prof_block all = {.at = at, .given = at != MPI_IN_PLACE};
    for (int i = 0; all.given && i < n; i++)
        all.bytes += prof_make_block(at, counts[i], types[i]).bytes;
    return all;
}

struct prof_block prof_typed_blocks_c(const void *at, const MPI_Count *counts, const MPI_Datatype *types,
                                      int n)
{
    struct prof_block all = {.at = at, .given = at != MPI_IN_PLACE};
    for (int i = 0; all.given && i < n; i++)
        all.bytes += prof_make_block(at, counts[i], types[i]).bytes;
    return all;
}

/* Returns the library's table; NULL if the program uses another MPI library or another version of this
 * one. */
static const struct fishplate_inside *find_library(void)
{
    const struct fishplate_inside *(*inside)(void);
    *(void **)&inside = dlsym(RTLD_DEFAULT, "fishplate_inside");
    const struct fishplate_inside *library = inside ? inside() : NULL;
    return library && strcmp(library->version, FISHPLATE_VERSION) == 0 && library->size == sizeof(*library)
               ? library
               : NULL;
}

/* Returns the kind of memory, as the library classifies it; host memory if the library cannot be queried. */
static int memory_kind(const void *address)
{
    static const struct fishplate_inside *library;
    static bool is_known;
    if (!is_known) {
        library = find_library();
        is_known = true;
    }
    const int kind = library ? library->memory_kind(address) : 0;
    return kind >= 0 && kind < PROF_MEMORY_KINDS ? kind : 0;
}

/* Counts an access for the reuse rate: the share of accesses to buffers used before, also weighted by size
 * [Liu04 9.2.4]. */
static void access_buffer(const struct prof_block *b)
{
    if (!b->given || b->bytes == 0)
        return;
    struct prof_reuse *r = &prof.reuse;
    prof.memory[memory_kind(b->at)] += b->bytes;
    r->accesses++;
    r->bytes += b->bytes;
    if (prof_buffer_check_seen(b->at)) {
        r->reused++;
        r->reused_bytes += b->bytes;
    }
}

static void count_size(struct prof_bin *bins, uint64_t bytes)
{
    const int bin = bytes ? 64 - __builtin_clzll(bytes) : 0;
    bins[bin < PROF_BINS ? bin : PROF_BINS - 1].count++;
    bins[bin < PROF_BINS ? bin : PROF_BINS - 1].bytes += bytes;
}

static void count_peer(int to, uint64_t bytes)
{
    struct prof_traffic *t = to >= 0 && prof.peers ? &prof.peers[to] : &prof.outside;
    t->messages++;
    t->bytes += bytes;
}

static void note_record_transfer(const struct prof_op *op, int call)
{
    struct prof_stat *stat = &prof.calls[call];
    const bool sends = op->send.given && (op->collective || op->to != PROF_NOBODY);
    const bool receives = op->receive.given && (op->collective || op->from != PROF_NOBODY);
    const uint64_t bytes = sends ? op->send.bytes : receives ? op->receive.bytes : 0;
    if (op->collective) {
        count_size(prof.coll, bytes);
    } else if (sends) {
        count_size(prof.p2p, bytes);
        count_peer(op->to, bytes);
    }
    if (receives && !op->collective)
        count_size(prof.received, op->receive.bytes);
    if (op->collective || sends || receives) {
        stat->sized++;
        stat->bytes += bytes;
    }
    if (sends)
        access_buffer(&op->send);
    if (receives && !(sends && op->replaces))
        access_buffer(&op->receive);
}

void prof_record_transfer(const struct prof_op *op)
{
    bool locked = prof_lock();
    note_record_transfer(op, op->call);
    if (prof.timeline)
        prof_event_add_transfer(op);
    prof_unlock(locked);
}

/* Hash table of persistent operations by request handle. */
enum { BUCKETS = 256 };
struct kept {
    struct kept *next;
    MPI_Request request;
    struct prof_op op;
};
static struct kept *kept[BUCKETS];

static struct kept **note_find_request(MPI_Request request)
{
    struct kept **at = &kept[((uintptr_t)request >> 4 ^ (uintptr_t)request >> 12) % BUCKETS];
    while (*at && (*at)->request != request)
        at = &(*at)->next;
    return at;
}

void prof_store_request(MPI_Request request, const struct prof_op *op)
{
    struct kept *made = calloc(1, sizeof(*made));
    if (!made)
        return;
    bool locked = prof_lock();
    struct kept **at = note_find_request(request);
    if (*at) { /* the handle was reused: the previous request was freed without notice */
        free(made);
        made = *at;
    } else {
        *at = made;
    }
    made->request = request;
    made->op = *op;
    prof_unlock(locked);
}

void prof_requests_started(int call, bool on, int count, const MPI_Request *requests)
{
    bool locked = prof_lock();
    for (int i = 0; on && i < count; i++) {
        const struct kept *k = *note_find_request(requests[i]);
        if (k)
            note_record_transfer(&k->op, call);
    }
    prof_unlock(locked);
}

void prof_drop_request(const MPI_Request *request)
{
    if (!request)
        return;
    bool locked = prof_lock();
    struct kept **at = note_find_request(*request), *old = *at;
    if (old)
        *at = old->next;
    prof_unlock(locked);
    free(old);
}
