/* directory.c: the directories of windows. The directories of this node's ranks are contiguous in the node's
 * memory, which every rank maps. The directory of a rank on another node is read by RDMA, once its address is
 * known: processes that have a connection are sent the address with the first window; others request it by a
 * frame at their first access, which needs a connection anyway. So a window needs no communication with ranks
 * that are never accessed, and a target's processor answers at most one request, for all windows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/directory.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/counter.h"
#include "boot/boot.h"
#include "obj/context.h"
#include "rma/rma.h"
#include "rma/window_memory.h"

static COUNTER(read_there, "rma_lookups_by_read",
               "Window segments of remote ranks looked up by RDMA read, without their processor.");
static COUNTER(looked_up_by_message, "rma_lookups_by_message",
               "Window segments of remote ranks looked up by a request message and a reply.");

#define BYTES (DIRECTORY_ENTRIES * sizeof(struct win_entry))
_Static_assert(BYTES <= NET_SPAN_OWN, "a directory fits what a rank has of the node's memory");

static int directory_open(struct win *w, struct directory *d)
{
    const struct boot *boot = w->proc->boot;
    uint64_t span;
    void *at;
    const size_t all = (size_t)boot->nlocal * NET_SPAN_OWN;
    if (net_span_get_own(w->proc->net, &span) == 0 && net_span_map(w->proc->net, span, all, &at) == 0) {
        d->length = all;
        d->node = at;
        d->mine = ptr_add(at, (MPI_Aint)(boot->local_rank * NET_SPAN_OWN));
        return MPI_SUCCESS;
    }
    if (!mapping_open(&d->own, "fishplate-windows", BYTES))
        return win_error(w, MPI_ERR_NO_MEM, "out of memory for a list of windows");
    d->mine = d->own.at;
    return MPI_SUCCESS;
}

int directory_add_window(struct win *w)
{
    struct directory *d = &w->proc->rma->directory;
    int rc = d->mine ? MPI_SUCCESS : directory_open(w, d);
    if (rc)
        return rc;
    struct win_entry *e = &d->mine[context_id_of(w->comm->context)];
    memset(e, 0, sizeof(*e));
    w->my_slot = &e->slot;
    w->mine = &e->target;
    return MPI_SUCCESS;
}

void directory_remove_window(struct win *w)
{
    if (w->mine)
        w->mine->context = 0;
    w->mine = NULL;
    w->my_slot = NULL;
}

void directory_close(struct rma *r)
{
    struct directory *d = &r->directory;
    if (d->adapter)
        d->adapter->ops->mem_release(d->adapter, &d->registration);
    if (d->node)
        munmap(d->node, d->length);
    mapping_close(&d->own);
    free(d->known);
}

bool directory_register(struct rma *r, struct transport *adapter)
{
    struct directory *d = &r->directory;
    if (!d->adapter && adapter->ops->mem_register(adapter, d->mine, BYTES, &d->registration, &d->key) == 0)
        d->adapter = adapter;
    mapping_close_file(&d->own);
    return d->adapter == adapter;
}

static uint32_t find_local_rank(const struct boot *boot, uint32_t job_rank)
{
    uint32_t low = 0, high = boot->nlocal - 1;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (boot->local_ranks[middle] < job_rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct win_entry *directory_local_entry(const struct win *w, int rank)
{
    const struct directory *d = &w->proc->rma->directory;
    const uint32_t id = context_id_of(w->comm->context);
    if (rank == w->comm->rank)
        return &d->mine[id];
    if (!d->node || !win_is_rank_on_node(w, rank))
        return NULL;
    const uint32_t place = find_local_rank(w->proc->boot, group_job_rank(w->comm->group, rank));
    struct win_entry *of = ptr_add(d->node, (MPI_Aint)(place * NET_SPAN_OWN));
    return &of[id];
}

/* ---- ranks of other nodes ---- */

static struct directory_known *known_slot(const struct directory *d, uint32_t number)
{
    uint32_t at = number * 2654435769u & (d->known_size - 1);
    while (d->known[at].number && d->known[at].number != number + 1)
        at = (at + 1) & (d->known_size - 1);
    return &d->known[at];
}

static const struct directory_known *find_known(const struct directory *d, const struct peer *peer)
{
    const struct directory_known *k = d->known_size ? known_slot(d, peer->rank) : NULL;
    return k && k->number && k->found ? k : NULL;
}

/* Returns the table entry of a process, created on first use. Returns NULL if memory is out or the process
 * belongs to another job: their numbers are reused, so they are queried for each window. */
static struct directory_known *get_known_process(const struct win *w, const struct peer *peer)
{
    struct directory *d = &w->proc->rma->directory;
    if (peer->rank >= w->proc->boot->size)
        return NULL;
    if (2 * (d->known_used + 1) > d->known_size) {
        const struct directory old = *d;
        const uint32_t size = d->known_size ? 2 * d->known_size : 8;
        struct directory_known *more = calloc(size, sizeof(*more));
        if (!more)
            return NULL;
        d->known = more;
        d->known_size = size;
        for (uint32_t i = 0; i < old.known_size; i++)
            if (old.known[i].number)
                *known_slot(d, old.known[i].number - 1) = old.known[i];
        free(old.known);
    }
    struct directory_known *k = known_slot(d, peer->rank);
    d->known_used += k->number == 0;
    k->number = peer->rank + 1;
    return k;
}

static void directory_store_address(const struct win_peer *p)
{
    struct directory_known *k = p->at.listed ? get_known_process(p->win, p->peer) : NULL;
    if (!k)
        return;
    k->base = p->at.entry - context_id_of(p->win->comm->context) * sizeof(struct win_entry);
    k->key = p->at.entry_key;
    k->found = true;
}

void directory_announce(struct win *w, const struct comm *parent)
{
    for (int r = 0; w->mine->listed && r < w->comm->size; r++) {
        struct peer *peer = parent->peers[r];
        if (!peer || peer->transport != w->adapter)
            continue;
        struct directory_known *k = get_known_process(w, peer);
        if (!k || k->notified)
            continue;
        rma_send(win_peer_for_sender(w, r), RMA_ENTRY, 0, 0, w->serial, w->mine, sizeof(*w->mine));
        k->notified = true;
    }
}

struct lookup {
    struct net_op op;
    struct net_mem mem;
    struct win_target found;
    int status;
    bool over;
};

static void lookup_done(struct net_op *op, int status)
{
    struct lookup *l = container_of(op, struct lookup, op);
    l->status = status;
    l->over = true;
}

static bool lookup_is_over(void *arg)
{
    return ((struct lookup *)arg)->over;
}

static bool read_entry(struct win_peer *p, const struct directory_known *known)
{
    struct transport *adapter = p->win->adapter;
    const uint32_t context = p->win->comm->context;
    const struct net_key key = known->key; /* copied because the table may be reallocated during the wait */
    struct net_key unused;
    struct lookup *l = calloc(1, sizeof(*l));
    if (!l || adapter->ops->mem_register(adapter, l, sizeof(*l), &l->mem, &unused) != 0) {
        free(l);
        return false;
    }
    l->op.done = lookup_done;
    l->status = adapter_post(
        p,
        &(struct adapter_request){.kind = ADAPTER_GET,
                                  .local = &l->found,
                                  .mem = &l->mem,
                                  .remote = known->base + context_id_of(context) * sizeof(struct win_entry) +
                                            offsetof(struct win_entry, target),
                                  .key = &key,
                                  .len = sizeof(l->found),
                                  .op = &l->op});
    if (!l->status)
        rma_wait(p->win->proc->rma, lookup_is_over, l, false, "description of a rank's window");
    const bool found = !l->status && l->found.context == context + 1;
    if (found && !p->known)
        p->at = l->found;
    counter_add(&read_there, found);
    adapter->ops->mem_release(adapter, &l->mem);
    free(l);
    return found;
}

static bool is_notified(void *arg)
{
    const struct win_peer *p = arg;
    return p->announced && p->announced == p->win->serial;
}

/* True also if another thread has read the entry that this one requested; the reply is then dropped. */
static bool is_known(void *arg)
{
    return ((struct win_peer *)arg)->known || is_notified(arg);
}

bool directory_is_settled(void *win)
{
    return ((struct win *)win)->asking == 0;
}

static int look_up_window(struct win_peer *p)
{
    struct win *w = p->win;
    if (!is_notified(p))
        net_progress(w->proc->net); /* RMA_ENTRY may have arrived */
    if (is_notified(p))
        return MPI_SUCCESS;
    const struct directory_known *known = find_known(&w->proc->rma->directory, p->peer);
    if (known && w->adapter && p->peer->transport == w->adapter && p->peer->caps.get && read_entry(p, known))
        return MPI_SUCCESS;
    w->asking++;
    rma_send(p, RMA_ENTRY_QUERY, 0, 0, 0, NULL, 0);
    int rc = rma_wait_for(w->proc->rma, w, p, is_known, p, false,
                          &(struct net_named){"description of a rank's window", p->peer->rank, false});
    counter_add(&looked_up_by_message, rc == 0);
    return rc;
}

int peer_look_up_window(struct win_peer *p)
{
    struct win *w = p->win;
    struct win_entry *near = directory_local_entry(w, p->rank);
    int rc = near ? MPI_SUCCESS : look_up_window(p);
    if (rc || p->known) /* another thread has stored the entry meanwhile */
        return rc;
    if (near)
        p->at = near->target;
    p->slot = near ? &near->slot : NULL;
    if (near && w->proc->rma->mailbox_hook.progress && p->rank != w->comm->rank) {
        p->mailbox = mailbox_from_directory(near - context_id_of(w->comm->context));
        p->bell = net_bell_local(w->proc->net, p->peer->rank);
    }
    if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        p->direct = win_memory_map_target(w, p->rank, &p->at, &p->mapping);
    if (!p->direct && p->at.on_device)
        p->direct = win_device_map(p);
    p->here = p->rank == w->comm->rank || p->direct;
    p->known = true;
    return MPI_SUCCESS;
}

void directory_handle_query(struct win *w, struct win_peer *from)
{
    struct directory_known *k = get_known_process(w, from->peer);
    rma_send(from, RMA_ENTRY, 1, 0, 0, w->mine, sizeof(*w->mine));
    if (k)
        k->notified = true;
}

static void directory_address_received(struct win_peer *from, uint64_t serial, const void *payload,
                                       size_t len)
{
    CHECK(len == sizeof(from->at), "a rank's description of its window has the wrong size");
    if (from->known || is_notified(from))
        return;
    memcpy(&from->at, payload, sizeof(from->at));
    from->announced = serial;
    directory_store_address(from);
}

void directory_handle_reply(struct win_peer *from, const void *payload, size_t len)
{
    CHECK(from->win->asking > 0, "a rank sent the description of its window without a request");
    from->win->asking--;
    directory_address_received(from, from->win->serial, payload, len);
}

/* Handles the announcement of a rank's entry. The announcement may be late (the window was freed and its
 * context id reused) or early (not all ranks have created the window). It is used only if the sender is that
 * member of the window and the serial number is newer than the last. */
void directory_handle_announcement(struct win *w, const struct peer *peer, const struct frame_header *h,
                                   const void *payload, size_t len)
{
    if (!w || h->source < 0 || h->source >= w->comm->size)
        return;
    struct win_peer *from = win_peer_for_sender(w, h->source);
    if (from->peer == peer && h->word > from->announced)
        directory_address_received(from, h->word, payload, len);
}
