/* dm.c: device memory: ordinary memory of this process, accessed through its handle and, after
 * registration, by offsets, like the memory of an adapter that the processor cannot address.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/mr.h"
#include "verbs/verbs.h"
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE_LOG 12
#define DM_WORD  4
#define DM_ACCESS                                                                                           \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
     IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE)

struct dm {
    struct ibv_dm ibv;
    struct dm *origin; /* handle that owns the memory: this one or, after ibv_import_dm, another one */
    char *memory;
    size_t length;
    atomic_int refs; /* of an origin: number of its regions and of handles imported from it */
};

static _Atomic uint64_t used; /* bytes allocated on all devices of this process */
static struct lock table_lock;
static struct dm *table[DM_MAX]; /* indexed by handle - 1 */

static struct dm *dm_from_ibv(struct ibv_dm *ibv)
{
    return CONTAINER_OF(ibv, struct dm, ibv);
}

static bool dm_contains(const struct dm *dm, uint64_t offset, size_t length)
{
    return offset <= dm->length && length <= dm->length - offset;
}

/* Checks a copy. Like adapters, accepts whole 4-byte words only. */
static int copy_check(const struct dm *dm, uint64_t offset, size_t length)
{
    if ((offset | length) % DM_WORD)
        return EINVAL;
    return dm_contains(dm, offset, length) ? 0 : EFAULT;
}

static int dm_copy_to(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t length)
{
    struct dm *dm = dm_from_ibv(ibv);
    int err = copy_check(dm, offset, length);
    if (!err)
        memcpy(dm->memory + offset, from, length);
    return err;
}

static int dm_copy_from(void *to, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
    struct dm *dm = dm_from_ibv(ibv);
    int err = copy_check(dm, offset, length);
    if (!err)
        memcpy(to, dm->memory + offset, length);
    return err;
}

static bool dm_reserve(size_t length)
{
    if (atomic_fetch_add(&used, length) + length <= DM_BYTES)
        return true;
    atomic_fetch_sub(&used, length);
    return false;
}

static uint32_t dm_number(struct dm *dm)
{
    uint32_t handle = 0;
    spinlock_acquire(&table_lock);
    for (uint32_t i = 0; i < DM_MAX && !handle; i++)
        if (!table[i]) {
            table[i] = dm;
            handle = i + 1;
        }
    spinlock_release(&table_lock);
    return handle;
}

/* Allocates whole pages, which are aligned for every request and can be mapped by peers. */
static bool dm_fill(struct dm *dm, struct ibv_context *c, size_t length)
{
    dm->memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (dm->memory == MAP_FAILED)
        return false;
    dm->length = length;
    dm->origin = dm;
    dm->ibv = (struct ibv_dm){
        .context = c, .memcpy_to_dm = dm_copy_to, .memcpy_from_dm = dm_copy_from, .handle = dm_number(dm)};
    if (dm->ibv.handle)
        return true;
    munmap(dm->memory, length);
    return false;
}

struct ibv_dm *dm_alloc(struct ibv_context *c, struct ibv_alloc_dm_attr *a)
{
    if (!ctx_has_feature(ctx_from_ibv(c), FEATURE_DM) || a->comp_mask || !a->length ||
        a->log_align_req > PAGE_LOG) {
        errno = !ctx_has_feature(ctx_from_ibv(c), FEATURE_DM) ? EOPNOTSUPP : EINVAL;
        return NULL;
    }
    if (a->length > DM_BYTES || !dm_reserve(a->length)) {
        errno = ENOMEM;
        return NULL;
    }
    struct dm *dm = calloc(1, sizeof(*dm));
    if (dm && dm_fill(dm, c, a->length))
        return &dm->ibv;
    free(dm);
    atomic_fetch_sub(&used, a->length);
    errno = ENOMEM;
    return NULL;
}

int dm_free(struct ibv_dm *ibv)
{
    struct dm *dm = dm_from_ibv(ibv);
    if (atomic_load(&dm->refs))
        return EBUSY;
    spinlock_acquire(&table_lock);
    table[ibv->handle - 1] = NULL;
    spinlock_release(&table_lock);
    munmap(dm->memory, dm->length);
    atomic_fetch_sub(&used, dm->length);
    free(dm);
    return 0;
}

struct ibv_mr *dm_register(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t length,
                           unsigned access)
{
    struct dm *dm = dm_from_ibv(ibv);
    const unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    if (access & ~(unsigned)DM_ACCESS || !(access & IBV_ACCESS_ZERO_BASED) ||
        !dm_contains(dm, offset, length) || ((access & writes) && !(access & IBV_ACCESS_LOCAL_WRITE))) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_mr *mr = mr_make(pd, dm->memory + offset, length, 0, access, 0);
    if (mr)
        mr_add_to_count(mr, &dm->origin->refs);
    return mr;
}

/* Imports device memory of this process. That of another process is not supported. */
SOFTIB_API struct ibv_dm *ibv_import_dm(struct ibv_context *c, uint32_t handle)
{
    struct dm *dm = ctx_from_ibv(c)->exporter == proc.slot ? calloc(1, sizeof(*dm)) : NULL;
    if (!dm) {
        errno = ctx_from_ibv(c)->exporter == proc.slot ? ENOMEM : EOPNOTSUPP;
        return NULL;
    }
    spinlock_acquire(&table_lock);
    struct dm *from = handle && handle <= DM_MAX ? table[handle - 1] : NULL;
    if (from) {
        *dm = (struct dm){.origin = from, .memory = from->memory, .length = from->length, .ibv = from->ibv};
        dm->ibv.context = c;
        atomic_fetch_add(&from->refs, 1);
    }
    spinlock_release(&table_lock);
    if (from)
        return &dm->ibv;
    free(dm);
    errno = ENOENT;
    return NULL;
}

SOFTIB_API void ibv_unimport_dm(struct ibv_dm *ibv)
{
    struct dm *dm = dm_from_ibv(ibv);
    atomic_fetch_sub(&dm->origin->refs, 1);
    free(dm);
}
