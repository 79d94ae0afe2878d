/* window_memory.c: allocates and registers the memory of a window. MPI allocates it in the node's shared
 * memory if another rank of the window is on the node, so that puts and gets are loads and stores. Memory
 * that other nodes access is registered once, for the lifetime of the window.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/window_memory.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/log.h"
#include "boot/boot.h"
#include "coll/coll.h"
#include "gpu/gpu.h"
#include "rma/rma.h"

/* Size of a huge page: private memory of this size or more is not a shared mapping. */
#define MAPPED_MAX ((size_t)2 << 20)

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

bool win_is_rank_on_node(const struct win *w, int rank)
{
    const struct boot *boot = w->proc->boot;
    const uint32_t job_rank = group_job_rank(w->comm->group, rank);
    return job_rank < boot->size && boot->node_of[job_rank] == boot->node;
}

/* Whether other ranks of the window are on this node, and whether any are on other nodes. */
struct member_locations {
    bool here, elsewhere;
};

static struct member_locations classify_members(const struct win *w)
{
    struct member_locations c = {0};
    for (int r = 0; r < w->comm->size && !(c.here && c.elsewhere); r++) {
        if (!win_is_rank_on_node(w, r))
            c.elsewhere = true;
        else
            c.here |= r != w->comm->rank;
    }
    return c;
}

/* Allocates memory of this process. Memory that other nodes access is a shared mapping, because softib writes
 * to it without a system call, unless it is so large that huge pages matter more (only private memory gets
 * them). */
static int allocate_private(struct win *w, const struct member_locations *c)
{
    const size_t page = page_size(), len = ALIGN_UP(MAX((size_t)w->size, 1), page);
    if (c->elsewhere && (len < MAPPED_MAX || w->proc->rma->debug) &&
        mapping_open(&w->mapped, "fishplate-window", len)) {
        w->memory = w->mapped.at;
        return MPI_SUCCESS;
    }
    w->memory = aligned_alloc(page, len);
    if (!w->memory)
        return win_error(w, MPI_ERR_NO_MEM, "out of memory for %lld bytes", (long long)w->size);
    w->owned = true;
    return MPI_SUCCESS;
}

/* Allocates in the node's shared memory if another rank of the node is a member and there is room, else
 * private memory. */
static int memory_allocate(struct win *w, const struct member_locations *c)
{
    const size_t len = ALIGN_UP((size_t)w->size, page_size());
    if (!c->here || len == 0 || net_span_alloc(w->proc->net, len, &w->span) != 0)
        return allocate_private(w, c);
    int rc = net_span_map(w->proc->net, w->span, len, &w->memory);
    if (rc) {
        net_span_discard_pages(w->proc->net, w->span, len);
        w->span = 0;
        return rc;
    }
    w->span_size = len;
    w->shared = true;
    return MPI_SUCCESS;
}

/* MPI_Win_allocate_shared requires that all ranks are on one node. */
static int check_all_share_memory(struct win *w, const struct member_locations *c)
{
    if (c->elsewhere)
        return win_error(w, MPI_ERR_RMA_SHARED,
                         "the ranks of the communicator are not all on this node: split it with "
                         "MPI_Comm_split_type and MPI_COMM_TYPE_SHARED first");
    return MPI_SUCCESS;
}

static struct transport *find_adapter(const struct net *net)
{
    struct transport *found = NULL;
    for (int i = 0; i < net->ntransports; i++)
        if (net->transports[i]->port)
            found = net->transports[i];
    return found;
}

/* Chooses whether processors, an adapter or both change 8-byte integers in the memory of this process
 * (docs/rma.md, By the adapter). If the adapter is atomic only with respect to itself, no processor may
 * change them, so that ranks of this node send frames: chosen only if the window requests it or no other rank
 * is here. */
static enum win_atomics choose_atomics(struct win *w, const struct member_locations *c)
{
    struct transport *adapter = w->adapter;
    if (w->by == BY_PROCESSOR || (w->by == BY_ANY && c->here && !adapter->adds_beside_cpu))
        return ATOMICS_PROCESSOR;
    if (adapter->adds_beside_cpu)
        return ATOMICS_BOTH;
    if (adapter->adds && adapter->ops->atomic_open(adapter) == 0)
        return ATOMICS_ADAPTER;
    if (w->by == BY_ADAPTER)
        log_info("accumulates to the memory of a window need this process: %s",
                 adapter->adds ? err_detail(MPI_ERR_OTHER)
                               : "it has no adapter with atomics, or several that each have their own");
    return ATOMICS_PROCESSOR;
}

/* Registers the memory so that adapters access it without this process. If that fails, frames are used. */
static void register_memory(struct win *w, const struct member_locations *c)
{
    struct win_target *mine = w->mine;
    if (!w->adapter || w->size == 0 || w->flavor == MPI_WIN_FLAVOR_DYNAMIC || mine->on_device ||
        (w->flavor == MPI_WIN_FLAVOR_CREATE && w->proc->rma->debug)) /* see transfer_is_possible() */
        return;
    if (w->adapter->ops->mem_register(w->adapter, w->memory, (size_t)w->size, &w->registration, &mine->key) ==
        0) {
        mine->registered = 1;
        mine->atomics = w->atomics = choose_atomics(w, c);
    } else {
        log_info(
            "the memory of a window (%lld bytes) was not registered: %s; its operations go through frames",
            (long long)w->size, err_detail(MPI_ERR_NO_MEM));
    }
}

/* Registers the window's directory entry. If that fails, ranks of other nodes request the entry and the lock
 * by frames. */
static void register_entry(struct win *w)
{
    struct win_target *mine = w->mine;
    if (!w->adapter || !directory_register(w->proc->rma, w->adapter))
        return;
    mine->entry = (uintptr_t)container_of(mine, struct win_entry, target);
    mine->entry_key = w->proc->rma->directory.key;
    mine->listed = 1;
    mine->locks_open = w->adapter->adds && !w->no_locks;
}

int win_memory_open(struct win *w)
{
    const struct member_locations c = classify_members(w);
    w->adapter = c.elsewhere ? find_adapter(w->proc->net) : NULL;
    int rc = directory_add_window(w);
    if (!rc && w->flavor == MPI_WIN_FLAVOR_ALLOCATE)
        rc = memory_allocate(w, &c);
    else if (!rc && w->flavor == MPI_WIN_FLAVOR_SHARED)
        rc = check_all_share_memory(w, &c);
    if (rc)
        return rc;
    if (c.here && !w->span && w->flavor != MPI_WIN_FLAVOR_SHARED && w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        mailbox_open(w->proc->rma);
    struct win_target *mine = w->mine;
    mine->size = (uint64_t)w->size;
    mine->unit = w->unit;
    mine->base = (uintptr_t)w->memory;
    mine->on_device = w->flavor == MPI_WIN_FLAVOR_CREATE && w->size > 0 && gpu_memory_is_device(w->memory);
    mine->span = w->span;
    register_entry(w);
    register_memory(w, &c);
    mapping_close_file(&w->mapped);
    mine->context = w->comm->context + 1;
    atomic_thread_fence(memory_order_seq_cst);
    return MPI_SUCCESS;
}

/* Bytes from the memory of this rank to that of the next one: contiguous unless the program permits gaps. */
static uint64_t shared_stride(const struct win *w, int rank)
{
    const uint64_t size = directory_local_entry(w, rank)->target.size;
    return info_get_bool(w->info, "alloc_shared_noncontig", false) ? ALIGN_UP(size, page_size()) : size;
}

/* Maps shared windows: the first rank allocates one piece of the node's memory for all members, and every
 * rank maps the whole. */
int win_memory_map_shared(struct win *w, struct comm *parent)
{
    struct dtype *byte = dtype_from_handle(MPI_BYTE);
    uint64_t total = 0, span = 0;
    bool fits = w->comm->size == 1 || w->proc->rma->directory.node;
    for (int r = 0; r < w->comm->size && fits; r++)
        fits = checked_add(total, shared_stride(w, r), &total) && total <= INT64_MAX;
    total = ALIGN_UP(MAX(total, 1), (uint64_t)page_size());
    if (w->comm->size == 1) {
        w->owned = true;
        w->memory = w->segment = aligned_alloc(page_size(), total);
        return w->memory ? MPI_SUCCESS : win_error(w, MPI_ERR_NO_MEM, "out of memory for the window");
    }
    if (w->comm->rank == 0 && fits && net_span_alloc(w->proc->net, total, &span) != 0)
        span = 0;
    struct coll_args a = {.kind = COLL_BCAST,
                          .name = "window",
                          .comm = parent,
                          .send = {.buf = &span, .count = sizeof(span), .type = byte},
                          .recv = {.buf = &span, .count = sizeof(span), .type = byte}};
    int rc = coll_run(&a);
    if (!rc && span == 0)
        rc = win_error(w, MPI_ERR_NO_MEM, "the node's shared memory has no room for the memory of all ranks");
    rc = rc ? rc : net_span_map(w->proc->net, span, total, &w->segment);
    if (rc)
        return rc;
    w->span = span;
    w->span_size = total;
    w->shared = true;
    w->memory = win_memory_map_target(w, w->comm->rank, w->mine, &(void *){NULL});
    return MPI_SUCCESS;
}

int win_agree_on_creation(struct win *w, struct comm *parent, int rc)
{
    struct rma *r = w->proc->rma;
    const int64_t serial = (int64_t)(w->serial ? w->serial : r->serial + 1);
    /* Largest at the lowest rank with memory. */
    const int64_t before = w->size > 0 ? w->comm->size - w->comm->rank : 0;
    const int64_t mine[4] = {rc ? (int64_t)rc << 32 | w->comm->rank : 0, serial, before,
                             w->mine && w->mine->on_device};
    int64_t all[4] = {0, serial, before, 0};
    struct dtype *type = dtype_from_handle(MPI_INT64_T);
    struct coll_args a = {.kind = COLL_ALLREDUCE,
                          .name = "window",
                          .comm = parent,
                          .send = {.buf = (void *)(uintptr_t)mine, .count = 4, .type = type},
                          .recv = {.buf = all, .count = 4, .type = type},
                          .op = op_from_handle(MPI_MAX)};
    int failed = coll_run(&a);
    atomic_thread_fence(memory_order_seq_cst);
    w->serial = (uint64_t)all[1];
    r->serial = MAX(r->serial, w->serial);
    w->first_with_memory = w->comm->size - (int)all[2];
    w->some_on_device = all[3] != 0;
    if (failed || rc || !all[0])
        return failed ? failed : rc;
    return win_error(w, (int)(all[0] >> 32), "rank %d could not make its part of the window", (int)all[0]);
}

char *win_memory_map_target(struct win *w, int rank, const struct win_target *t, void **mapping)
{
    if (w->flavor == MPI_WIN_FLAVOR_SHARED) {
        uint64_t at = 0;
        for (int r = 0; r < rank; r++)
            at += shared_stride(w, r);
        return (char *)w->segment + at;
    }
    if (rank == w->comm->rank)
        return w->memory;
    if (!t->span || !directory_local_entry(w, rank))
        return NULL;
    if (net_span_map(w->proc->net, t->span, ALIGN_UP((size_t)t->size, page_size()), mapping) != 0)
        return NULL;
    return *mapping;
}

void win_memory_close(struct win *w)
{
    struct net *net = w->proc->net;
    if (w->registration.length)
        w->adapter->ops->mem_release(w->adapter, &w->registration);
    if (w->flavor == MPI_WIN_FLAVOR_SHARED && w->segment) {
        if (w->span)
            net_span_unmap(w->segment, w->span_size);
        if (w->span && w->comm->rank == 0)
            net_span_discard_pages(net, w->span, w->span_size);
    } else if (w->span) {
        net_span_unmap(w->memory, w->span_size);
        net_span_discard_pages(net, w->span, w->span_size);
    }
    if (w->owned)
        free(w->memory);
    mapping_close(&w->mapped);
    win_device_close(w);
    directory_remove_window(w);
}

/* `rank` MPI_PROC_NULL means the lowest rank of the window whose size is not 0 (MPI-5.0, 12.2.3). */
int win_shared_query(struct win *w, int rank, MPI_Aint *size, MPI_Aint *unit, void **base)
{
    struct win_peer *p;
    if (w->flavor != MPI_WIN_FLAVOR_SHARED && w->flavor != MPI_WIN_FLAVOR_ALLOCATE &&
        w->flavor != MPI_WIN_FLAVOR_CREATE)
        return win_error(w, MPI_ERR_RMA_FLAVOR,
                         "a window of MPI_Win_create_dynamic has no shared memory to query");
    int rc = check_rank(w, rank);
    if (rc)
        return rc;
    if (rank == MPI_PROC_NULL)
        rank = w->first_with_memory;
    *size = 0;
    *unit = 1;
    *base = NULL;
    if (rank == w->comm->size)
        return MPI_SUCCESS;
    rc = win_peer(w, rank, &p);
    if (rc)
        return rc;
    if (!p->direct || p->import) /* not shared with this process: size 0 (MPI-4.1, 12.2.4) */
        return w->flavor == MPI_WIN_FLAVOR_SHARED
                   ? win_error(w, MPI_ERR_RMA_SHARED, "rank %d shares no memory", rank)
                   : MPI_SUCCESS;
    *size = (MPI_Aint)p->at.size;
    *unit = p->at.unit;
    *base = *size > 0 ? p->direct : NULL;
    return MPI_SUCCESS;
}
