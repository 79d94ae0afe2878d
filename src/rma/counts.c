/* counts.c: MPI_Win_post and MPI_Win_complete between nodes: an RDMA write of a counter into the memory of
 * the rank that waits and polls the counter. The target's processor handles no frame, and no credit is used.
 * A pair of ranks has two counters at each end, in registered memory, which are allocated when one of the two
 * ranks first posts. That post is a frame that carries the address of its counters; the other rank answers
 * with the address of its own. Ranks that never post to each other have no counters.
 *
 * A counter has one writer, so no atomics are needed, and a write may be repeated when its connection has
 * moved to another rail. A counter includes the number of the window: a late write, after the memory was
 * assigned to another window, does not count.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/counter.h"
#include "rma/rma.h"

static COUNTER(written, "rma_counts_written",
               "MPI_Win_post and MPI_Win_complete reported to a rank of another node by one RDMA write.");

struct counter_pair { /* indexed by enum count_kind; written by one remote rank */
    _Atomic uint64_t count[2];
};

enum { CHUNK = 4096, COUNTER_PAIRS = CHUNK / sizeof(struct counter_pair) };

struct counts_chunk {
    struct counts_chunk *next;
    struct mapping memory;
    struct counter_pair *pairs; /* in `memory` */
    struct net_mem mem;
    struct net_key key;
    bool taken[COUNTER_PAIRS];
    int free; /* pairs that are not taken */
};

struct counts_place {
    uint64_t address;
    struct net_key key;
};

struct counts {
    struct counts_chunk *chunk;
    struct counter_pair *pair; /* counters that the other rank writes */
    struct counts_place there; /* the pair at the other rank that this process writes */
    bool found;                /* `there` is known */
    bool notified;             /* the address of `pair` was sent to the other rank */
    uint32_t seen[2], sent[2]; /* by kind: posts or completes consumed from `pair`, and written to `there` */
};

static struct counts_chunk *chunk_new(const struct win *w)
{
    struct transport *adapter = w->adapter;
    struct counts_chunk *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    if (!mapping_open(&c->memory, "fishplate-counts", CHUNK) ||
        adapter->ops->mem_register(adapter, c->memory.at, CHUNK, &c->mem, &c->key) != 0) {
        mapping_close(&c->memory);
        free(c);
        return NULL;
    }
    mapping_close_file(&c->memory);
    c->pairs = c->memory.at;
    c->free = COUNTER_PAIRS;
    c->next = w->proc->rma->counts;
    w->proc->rma->counts = c;
    w->proc->rma->counts_adapter = adapter;
    return c;
}

void counts_close_all(struct rma *r)
{
    while (r->counts) {
        struct counts_chunk *c = r->counts;
        r->counts = c->next;
        r->counts_adapter->ops->mem_release(r->counts_adapter, &c->mem);
        mapping_close(&c->memory);
        free(c);
    }
}

static bool allocate_counters(struct counts *n, const struct win *w)
{
    struct counts_chunk *c = w->proc->rma->counts;
    while (c && !c->free)
        c = c->next;
    c = c ? c : chunk_new(w);
    int i = 0;
    while (c && c->taken[i])
        i++;
    if (!c)
        return false;
    c->taken[i] = true;
    c->free--;
    n->chunk = c;
    n->pair = &c->pairs[i];
    return true;
}

/* Returns the counters of a peer, created on first use; NULL if the peer must be notified by frames. */
static struct counts *counts_get_for_peer(struct win_peer *p)
{
    const struct win *w = p->win;
    const struct transport_caps *caps = &p->peer->caps;
    if (p->counts)
        return p->counts;
    if (!w->adapter || p->peer->transport != w->adapter || !caps->put || caps->put_silent < sizeof(uint64_t))
        return NULL;
    struct counts *n = calloc(1, sizeof(*n));
    if (n && !allocate_counters(n, w)) {
        free(n);
        n = NULL;
    }
    p->counts = n;
    return n;
}

/* Frees the counters. If the window has lost a member, a remote write into the pair may still arrive, so the
 * pair is not reused. */
void counts_close(struct win_peer *p)
{
    struct counts *n = p->counts;
    if (!n)
        return;
    if (!p->win->comm->broken) {
        n->chunk->taken[n->pair - n->chunk->pairs] = false;
        n->chunk->free++;
    }
    free(n);
    p->counts = NULL;
}

bool counts_write(struct win_peer *to, enum count_kind kind)
{
    struct counts *n = to->counts;
    if (!n || !n->found)
        return false;
    uint64_t word = to->win->serial << 32 | (n->sent[kind] + 1u);
    const struct adapter_request r = {.kind = ADAPTER_PUT,
                                      .local = &word,
                                      .remote = n->there.address + kind * sizeof(uint64_t),
                                      .key = &n->there.key,
                                      .len = sizeof(word)};
    if (adapter_post(to, &r) != 0)
        return false;
    n->sent[kind]++;
    counter_add(&written, 1);
    return true;
}

uint32_t counts_get_unconsumed(const struct win_peer *from, enum count_kind kind)
{
    const struct counts *n = from->counts;
    const uint64_t word = n ? atomic_load_explicit(&n->pair->count[kind], memory_order_acquire) : 0;
    return n && (uint32_t)(word >> 32) == (uint32_t)from->win->serial ? (uint32_t)word - n->seen[kind] : 0;
}

void counts_consume(struct win_peer *from, enum count_kind kind, uint32_t some)
{
    from->counts->seen[kind] += some;
}

void counts_notify(struct win_peer *to, enum rma_frame what)
{
    struct counts *n = counts_get_for_peer(to);
    if (!n || n->notified) {
        rma_send(to, what, 0, 0, 0, NULL, 0);
        return;
    }
    const struct counts_place mine = {.address = (uintptr_t)n->pair, .key = n->chunk->key};
    n->notified = true;
    rma_send(to, what, 0, 0, 0, &mine, sizeof(mine));
}

void counts_handle_address(struct win_peer *from, const void *payload, size_t len)
{
    if (len == 0)
        return;
    CHECK(len == sizeof(struct counts_place), "a rank's description of its counters has the wrong size");
    struct counts *n = counts_get_for_peer(from);
    if (!n)
        return;
    memcpy(&n->there, payload, sizeof(n->there));
    n->found = true;
    if (!n->notified)
        counts_notify(from, RMA_COUNTS);
}
