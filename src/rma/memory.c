/* memory.c: where the memory of a window is. Memory that MPI allocates comes from the node's shared memory as
 * soon as another rank of the window is on the node, so that puts and gets are loads and stores. The slots
 * (locks) of the ranks of a node are together in the node's area. Memory that other nodes access is
 * registered once, for the lifetime of the window.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/memory.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mapping.h"
#include "boot/boot.h"
#include "coll/coll.h"
#include "rma/engine.h"

#define MAPPED_MAX ((size_t)2 << 20) /* a huge page */

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

bool win_on_my_node(const struct win *w, int rank)
{
    const struct boot *boot = w->proc->boot;
    const uint32_t job_rank = group_job_rank(w->comm->group, rank);
    return job_rank < boot->size && boot->node_of[job_rank] == boot->node;
}

/* The first rank of the window on this node, whether there is another, and whether there is one elsewhere. */
struct company {
    int leader;
    bool here, elsewhere;
};

static struct company company_of(const struct win *w)
{
    struct company c = {.leader = -1};
    for (int r = 0; r < w->comm->size; r++) {
        if (!win_on_my_node(w, r)) {
            c.elsewhere = true;
            continue;
        }
        if (c.leader < 0)
            c.leader = r;
        c.here |= r != w->comm->rank;
    }
    return c;
}

/* Of this process. What other nodes access is a shared mapping, into which softib stores without a system call, unless it
 * is so large that huge pages matter more: those only private memory gets. */
static int allocate_private(struct win *w, const struct company *c)
{
    const size_t page = page_size(), len = ALIGN_UP(MAX((size_t)w->size, 1), page);
    if (c->elsewhere && len < MAPPED_MAX && (w->memory = mapping_shared("fishplate-window", len))) {
        w->mapped = len;
        return MPI_SUCCESS;
    }
    w->memory = aligned_alloc(page, len);
    if (!w->memory)
        return win_error(w, MPI_ERR_NO_MEM, "out of memory for %lld bytes", (long long)w->size);
    w->owned = true;
    return MPI_SUCCESS;
}

/* In the node's memory if somebody else is there to use it and it can be had, else private. */
static int allocate(struct win *w, const struct company *c)
{
    const size_t len = ALIGN_UP((size_t)w->size, page_size());
    if (!c->here || len == 0 || net_span_alloc(w->proc->net, len, &w->span) != 0)
        return allocate_private(w, c);
    int rc = net_span_map(w->proc->net, w->span, len, &w->memory);
    if (rc) {
        net_span_drop(w->proc->net, w->span, len);
        w->span = 0;
        return rc;
    }
    w->span_size = len;
    w->shared = true;
    return MPI_SUCCESS;
}

/* MPI_Win_allocate_shared is for ranks that share memory. */
static int check_together(struct win *w, const struct company *c)
{
    if (c->elsewhere)
        return win_error(w, MPI_ERR_RMA_SHARED,
                         "the ranks of the communicator are not all on this node: split it with "
                         "MPI_Comm_split_type and MPI_COMM_TYPE_SHARED first");
    return MPI_SUCCESS;
}

static struct win_slot *private_slot(const struct win *w)
{
    struct win_slot *slot = mapping_shared("fishplate-lock", sizeof(*slot));
    if (!slot)
        win_error(w, MPI_ERR_NO_MEM, "out of memory for the window's lock");
    return slot;
}

static struct transport *adapter_of(const struct net *net)
{
    struct transport *found = NULL;
    for (int i = 0; i < net->ntransports; i++)
        if (net->transports[i]->port)
            found = net->transports[i];
    return found;
}

/* So that an adapter reaches the memory without this process; where that is refused, frames do the work. */
static void register_memory(struct win *w, struct win_target *mine)
{
    if (!w->adapter || w->size == 0 || w->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return;
    if (w->adapter->ops->mem_register(w->adapter, w->memory, (size_t)w->size, &w->registration, &mine->key) ==
        0) {
        mine->registered = 1;
        mine->atomics = w->wide =
            w->by_adapter && w->adapter->adds && w->adapter->ops->atomic_open(w->adapter) == 0;
        if (w->by_adapter && !w->wide)
            log_info("accumulates to the memory of a window need this process: %s",
                     w->adapter->adds
                         ? err_detail(MPI_ERR_OTHER)
                         : "it has no adapter with atomics, or several that each have their own");
    } else {
        log_info(
            "the memory of a window (%lld bytes) was not registered: %s; its operations go through frames",
            (long long)w->size, err_detail(MPI_ERR_NO_MEM));
    }
}

/* The same for the locks of this node's ranks: without it the target's progress takes them for ranks of other nodes. */
static void register_slots(struct win *w, size_t length, struct win_target *mine)
{
    if (!w->adapter || !w->adapter->adds || w->no_locks)
        return;
    if (w->adapter->ops->mem_register(w->adapter, w->slots, length, &w->slots_registration,
                                      &mine->slots_key) != 0)
        return;
    mine->slots_base = (uintptr_t)w->slots;
    mine->slots_open = 1;
}

/* The leader makes the slots of its node: in the area when there are others, else in private memory. */
static int open_slots(struct win *w, const struct company *c, struct win_target *mine)
{
    struct net *net = w->proc->net;
    size_t length = w->proc->boot->nlocal * sizeof(struct win_slot);
    if (!w->slots_leader)
        return MPI_SUCCESS;
    if (c->here && net_area_alloc(net, length, &mine->slots) == 0)
        w->slots = (struct win_slot *)(void *)(net->area + mine->slots);
    else
        mine->slots = WIN_NO_SLOTS;
    w->slots_offset = mine->slots; /* so that it is freed, should the window fail */
    if (w->flavor == MPI_WIN_FLAVOR_SHARED && c->here && mine->slots == WIN_NO_SLOTS)
        return win_error(w, MPI_ERR_NO_MEM, "the node's shared memory for locks is full");
    if (!c->here) {
        length = sizeof(struct win_slot);
        w->slots = private_slot(w);
        if (!w->slots)
            return MPI_ERR_NO_MEM;
    }
    if (c->elsewhere && w->slots)
        register_slots(w, length, mine);
    return MPI_SUCCESS;
}

int win_memory_open(struct win *w, struct win_target *mine)
{
    const struct company c = company_of(w);
    const struct boot *boot = w->proc->boot;
    *mine = (struct win_target){.size = (uint64_t)w->size,
                                .unit = w->unit,
                                .local_rank = boot->local_rank,
                                .leader = c.leader,
                                .slots = WIN_NO_SLOTS};
    w->adapter = c.elsewhere ? adapter_of(w->proc->net) : NULL;
    int rc = MPI_SUCCESS;
    if (w->flavor == MPI_WIN_FLAVOR_ALLOCATE)
        rc = allocate(w, &c);
    else if (w->flavor == MPI_WIN_FLAVOR_SHARED)
        rc = check_together(w, &c);
    if (rc)
        return rc;
    w->slots_leader = c.leader == w->comm->rank;
    rc = open_slots(w, &c, mine);
    if (rc)
        return rc;
    register_memory(w, mine);
    mine->base = (uintptr_t)w->memory;
    mine->span = w->span;
    return MPI_SUCCESS;
}

static int meet_slots(struct win *w)
{
    const struct boot *boot = w->proc->boot;
    w->slots_offset = w->targets[w->targets[w->comm->rank].leader].slots;
    if (w->slots_offset != WIN_NO_SLOTS) {
        w->slots = (struct win_slot *)(void *)(w->proc->net->area + w->slots_offset);
        w->my_slot = &w->slots[boot->local_rank];
        return MPI_SUCCESS;
    }
    if (!w->slots)
        w->slots = private_slot(w);
    w->my_slot = w->slots;
    return w->slots ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static MPI_Aint shared_stride(const struct win *w, int rank)
{
    const MPI_Aint size = (MPI_Aint)w->targets[rank].size;
    const MPI_Aint align =
        info_get_bool(w->info, "alloc_shared_noncontig", false) ? (MPI_Aint)page_size() : CACHE_LINE;
    /* One rank's memory follows the other's without a gap unless the program allows it. */
    return info_get_bool(w->info, "alloc_shared_noncontig", false) ? ALIGN_UP(size, align) : size;
}

/* One piece of the node's memory for all, from the first rank; everybody maps the whole. */
static int meet_shared(struct win *w)
{
    struct dtype *byte = dtype_from(MPI_BYTE);
    uint64_t total = 0, span = 0;
    for (int r = 0; r < w->comm->size; r++)
        total += (uint64_t)shared_stride(w, r);
    total = ALIGN_UP(MAX(total, 1), (uint64_t)page_size());
    if (w->comm->size == 1) {
        w->owned = true;
        w->memory = w->segment = aligned_alloc(page_size(), total);
        return w->memory ? MPI_SUCCESS : win_error(w, MPI_ERR_NO_MEM, "out of memory for the window");
    }
    if (w->comm->rank == 0 && net_span_alloc(w->proc->net, total, &span) != 0)
        span = 0;
    struct coll_args a = {.kind = COLL_BCAST,
                          .name = "window",
                          .comm = w->comm,
                          .send = {.buf = &span, .count = sizeof(span), .type = byte},
                          .recv = {.buf = &span, .count = sizeof(span), .type = byte}};
    int rc = coll_run(&a);
    if (!rc && span == 0)
        rc = win_error(w, MPI_ERR_NO_MEM, "the node's shared memory has no room for %llu bytes",
                       (unsigned long long)total);
    rc = rc ? rc : net_span_map(w->proc->net, span, total, &w->segment);
    if (rc)
        return rc;
    w->span = span;
    w->span_size = total;
    w->shared = true;
    w->memory = win_memory_of(w, w->comm->rank, &(void *){NULL});
    return MPI_SUCCESS;
}

int win_memory_meet(struct win *w)
{
    int rc = meet_slots(w);
    if (!rc && w->flavor == MPI_WIN_FLAVOR_SHARED)
        rc = meet_shared(w);
    return rc;
}

int win_agree(struct win *w, int rc)
{
    int worst = rc, all = 0;
    struct dtype *type = dtype_from(MPI_INT);
    struct coll_args a = {.kind = COLL_ALLREDUCE,
                          .name = "window",
                          .comm = w->comm,
                          .send = {.buf = &worst, .count = 1, .type = type},
                          .recv = {.buf = &all, .count = 1, .type = type},
                          .op = op_from(MPI_MAX)};
    int failed = coll_run(&a);
    if (failed)
        return failed;
    return all && !rc ? win_error(w, all, "another rank could not make its part of the window") : all;
}

char *win_memory_of(struct win *w, int rank, void **mapping)
{
    const struct win_target *t = &w->targets[rank];
    if (w->flavor == MPI_WIN_FLAVOR_SHARED) {
        MPI_Aint at = 0;
        for (int r = 0; r < rank; r++)
            at += shared_stride(w, r);
        return (char *)w->segment + at;
    }
    if (rank == w->comm->rank)
        return w->memory;
    if (!t->span || !win_on_my_node(w, rank) || w->slots_offset == WIN_NO_SLOTS)
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
    if (w->slots_registration.length)
        w->adapter->ops->mem_release(w->adapter, &w->slots_registration);
    if (w->flavor == MPI_WIN_FLAVOR_SHARED && w->segment) {
        if (w->span)
            net_span_unmap(w->segment, w->span_size);
        if (w->span && w->comm->rank == 0)
            net_span_drop(net, w->span, w->span_size);
    } else if (w->span) {
        net_span_unmap(w->memory, w->span_size);
        net_span_drop(net, w->span, w->span_size);
    }
    if (w->owned)
        free(w->memory);
    if (w->mapped)
        munmap(w->memory, w->mapped);
    if (w->slots && w->slots_offset == WIN_NO_SLOTS)
        munmap(w->slots, sizeof(*w->slots));
    if (w->slots_offset != WIN_NO_SLOTS && w->slots_leader)
        net_area_free(net, w->slots_offset, w->proc->boot->nlocal * sizeof(struct win_slot));
}

/* MPI_PROC_NULL asks for the first rank with memory. */
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
    if (rank == MPI_PROC_NULL) {
        int found = 0;
        while (found < w->comm->size && (w->targets[found].size == 0 || !win_on_my_node(w, found)))
            found++;
        rank = found;
    }
    *size = 0;
    *unit = 1;
    *base = NULL;
    if (rank == w->comm->size)
        return MPI_SUCCESS;
    rc = win_peer(w, rank, &p);
    if (rc)
        return rc;
    if (!p->direct) /* not shared with this process: size 0 (MPI-4.1, 12.2.4) */
        return w->flavor == MPI_WIN_FLAVOR_SHARED
                   ? win_error(w, MPI_ERR_RMA_SHARED, "rank %d shares no memory", rank)
                   : MPI_SUCCESS;
    *size = (MPI_Aint)w->targets[rank].size;
    *unit = w->targets[rank].unit;
    *base = *size > 0 ? p->direct : NULL;
    return MPI_SUCCESS;
}
