/* imports.c: finds, adds and evicts mappings of other processes' GPU memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/imports.h"

#include <stddef.h>

#include "base/counter.h"
#include "base/err.h"

static COUNTER(opened, "gpu_imports_opened", "Allocations of other processes that were mapped.");
static COUNTER(hits, "gpu_import_hits", "Uses of an allocation of another process that was mapped already.");
static COUNTER(closed, "gpu_imports_closed", "Mappings of other processes' allocations that were closed.");

static bool is_same(const struct gpu_export *a, const struct gpu_export *b)
{
    return a->pid == b->pid && a->id == b->id && a->start == b->start && a->size == b->size;
}

/* Two allocations of one process that overlap cannot exist at the same time: the owner has freed the one that is mapped. */
static bool is_outdated(const struct gpu_export *mapped, const struct gpu_export *now)
{
    return mapped->pid == now->pid && !is_same(mapped, now) && mapped->start < now->start + now->size &&
           now->start < mapped->start + mapped->size;
}

static void close_import(struct gpu_import *it, const struct gpu_ops *ops)
{
    ops->unmap_export(it->address);
    *it = (struct gpu_import){0};
    counter_add(&closed, 1);
}

/* A free entry, after closing the one that was not used for longest if necessary; NULL: all are in use. */
static struct gpu_import *get_entry(struct gpu_imports *imports, const struct gpu_ops *ops)
{
    struct gpu_import *oldest = NULL;
    for (size_t i = 0; i < GPU_IMPORTS_MOST; i++) {
        struct gpu_import *it = &imports->entries[i];
        if (!it->address)
            return it;
        if (it->users == 0 && (!oldest || it->last_use < oldest->last_use))
            oldest = it;
    }
    if (oldest)
        close_import(oldest, ops);
    return oldest;
}

int gpu_imports_get(struct gpu_imports *imports, const struct gpu_ops *ops, const struct gpu_export *exported,
                    void **out)
{
    for (size_t i = 0; i < GPU_IMPORTS_MOST; i++) {
        struct gpu_import *it = &imports->entries[i];
        if (!it->address)
            continue;
        if (is_same(&it->of, exported)) {
            it->users++;
            it->last_use = ++imports->uses;
            counter_add(&hits, 1);
            *out = it->address;
            return 0;
        }
        if (it->users == 0 && is_outdated(&it->of, exported))
            close_import(it, ops);
    }
    struct gpu_import *it = get_entry(imports, ops);
    if (!it)
        return ERR_AGAIN;
    void *address;
    int rc = ops->map_export(exported, &address);
    if (rc)
        return rc;
    *it = (struct gpu_import){.of = *exported, .address = address, .users = 1, .last_use = ++imports->uses};
    counter_add(&opened, 1);
    *out = address;
    return 0;
}

void gpu_imports_put(struct gpu_imports *imports, const void *address)
{
    for (size_t i = 0; i < GPU_IMPORTS_MOST; i++)
        if (imports->entries[i].address == address) {
            imports->entries[i].users--;
            return;
        }
}

void gpu_imports_clear(struct gpu_imports *imports, const struct gpu_ops *ops)
{
    for (size_t i = 0; i < GPU_IMPORTS_MOST; i++)
        if (imports->entries[i].address)
            close_import(&imports->entries[i], ops);
}
