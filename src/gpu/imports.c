/* imports.c: finds, adds and evicts mappings of other processes' GPU memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/imports.h"

#include <stddef.h>

#include "base/counter.h"
#include "base/err.h"
#include "base/tunable.h"

static LABORATORY_SIZE(
    idle_limit, "GPU_IMPORT_BYTES", (int64_t)4 << 30, 0, INT64_MAX,
    "Bytes of GPU memory of other processes that may stay mapped while no message uses them. "
    "The GPU keeps mapped memory allocated, also if its owner has freed it.");

static COUNTER(opened, "gpu_imports_opened", "Allocations of other processes that were mapped.");
static COUNTER(hits, "gpu_import_hits", "Uses of an allocation of another process that was mapped already.");
static COUNTER(closed, "gpu_imports_closed", "Mappings of other processes' allocations that were closed.");

static bool are_of_one_process(const struct gpu_export *a, const struct gpu_export *b)
{
    return a->pid == b->pid && a->opened == b->opened;
}

static bool exports_are_equal(const struct gpu_export *a, const struct gpu_export *b)
{
    return are_of_one_process(a, b) && a->id == b->id && a->start == b->start && a->size == b->size;
}

/* True if the owner of the mapped allocation has freed it: allocations of one process that exist at the
 * same time do not overlap, and processes that exist at the same time have different pids. */
static bool is_outdated(const struct gpu_export *mapped, const struct gpu_export *now)
{
    if (!are_of_one_process(mapped, now))
        return mapped->pid == now->pid;
    return !exports_are_equal(mapped, now) && mapped->start < now->start + now->size &&
           now->start < mapped->start + mapped->size;
}

/* The buffer id of the mapping; 0 if nothing is mapped there. */
static uint64_t find_mapping_id(const struct gpu_ops *ops, const void *address)
{
    struct gpu_range range;
    return ops->find_range((uintptr_t)address, &range) ? range.id : 0;
}

/* Unmaps an import that has no user. */
static void close_import(struct gpu_imports *imports, struct gpu_import *it, const struct gpu_ops *ops)
{
    imports->idle_bytes -= it->of.size;
    if (find_mapping_id(ops, it->address) == it->mapping_id)
        ops->unmap_export(&it->of, it->address);
    *it = (struct gpu_import){0};
    counter_add(&closed, 1);
}

/* The least recently used mapping without users; NULL if all are in use. */
static struct gpu_import *find_oldest(struct gpu_imports *imports)
{
    struct gpu_import *oldest = NULL;
    for (size_t i = 0; i < GPU_IMPORTS_MOST; i++) {
        struct gpu_import *it = &imports->entries[i];
        if (it->address && it->users == 0 && (!oldest || it->last_use < oldest->last_use))
            oldest = it;
    }
    return oldest;
}

/* A free entry, evicting an unused mapping if necessary; NULL if all are in use. */
static struct gpu_import *get_entry(struct gpu_imports *imports, const struct gpu_ops *ops)
{
    for (size_t i = 0; i < GPU_IMPORTS_MOST; i++)
        if (!imports->entries[i].address)
            return &imports->entries[i];
    struct gpu_import *oldest = find_oldest(imports);
    if (oldest)
        close_import(imports, oldest, ops);
    return oldest;
}

int gpu_imports_get(struct gpu_imports *imports, const struct gpu_ops *ops, const struct gpu_export *exported,
                    void **out)
{
    for (size_t i = 0; i < GPU_IMPORTS_MOST; i++) {
        struct gpu_import *it = &imports->entries[i];
        if (!it->address)
            continue;
        if (exports_are_equal(&it->of, exported) && find_mapping_id(ops, it->address) == it->mapping_id) {
            imports->idle_bytes -= it->users++ == 0 ? it->of.size : 0;
            it->last_use = ++imports->uses;
            counter_add(&hits, 1);
            *out = it->address;
            return 0;
        }
        if (it->users == 0 && (is_outdated(&it->of, exported) || exports_are_equal(&it->of, exported)))
            close_import(imports, it, ops);
    }
    struct gpu_import *it = get_entry(imports, ops);
    if (!it)
        return ERR_AGAIN;
    void *address;
    int rc = ops->map_export(exported, &address);
    if (rc)
        return rc;
    *it = (struct gpu_import){.of = *exported,
                              .address = address,
                              .mapping_id = find_mapping_id(ops, address),
                              .last_use = ++imports->uses,
                              .users = 1};
    counter_add(&opened, 1);
    *out = address;
    return 0;
}

void gpu_imports_put(struct gpu_imports *imports, const struct gpu_ops *ops, const void *address)
{
    for (size_t i = 0; i < GPU_IMPORTS_MOST; i++) {
        struct gpu_import *it = &imports->entries[i];
        if (it->address == address && --it->users == 0)
            imports->idle_bytes += it->of.size;
    }
    for (struct gpu_import *it; imports->idle_bytes > (uint64_t)idle_limit.value;
         close_import(imports, it, ops))
        if (!(it = find_oldest(imports)) || it->last_use == imports->uses)
            return;
}

void gpu_imports_clear(struct gpu_imports *imports, const struct gpu_ops *ops)
{
    for (size_t i = 0; i < GPU_IMPORTS_MOST; i++)
        if (imports->entries[i].address)
            close_import(imports, &imports->entries[i], ops);
    imports->idle_bytes = 0;
}
