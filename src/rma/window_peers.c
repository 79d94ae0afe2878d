/* window_peers.c: the ranks of a window that this process has accessed, or that have accessed it. Ranks that
 * never communicate need no memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "rma/rma.h"

static uint32_t table_slot(const struct win *w, int rank)
{
    uint32_t at = (uint32_t)rank * 2654435769u & (w->table_size - 1);
    while (w->table[at] && w->table[at]->rank != rank)
        at = (at + 1) & (w->table_size - 1);
    return at;
}

static bool peers_grow(struct win *w)
{
    struct win_peer **old = w->table;
    const uint32_t size = w->table_size;
    struct win_peer **table = calloc(size ? 2 * size : 8, sizeof(struct win_peer *));
    if (!table)
        return false;
    w->table = table;
    w->table_size = size ? 2 * size : 8;
    for (uint32_t i = 0; i < size; i++)
        if (old[i])
            w->table[table_slot(w, old[i]->rank)] = old[i];
    free(old);
    return true;
}

static int peer_new(struct win *w, int rank, struct win_peer **out)
{
    struct peer *peer;
    int rc = comm_get_peer(w->comm, rank, &peer);
    if (rc)
        return rc;
    struct win_peer *p = calloc(1, sizeof(*p));
    if (!p)
        return win_error(w, MPI_ERR_NO_MEM, "out of memory: cannot reach rank %d", rank);
    list_init(&p->busy);
    p->win = w;
    p->peer = peer;
    p->rank = rank;
    *out = p;
    return MPI_SUCCESS;
}

int win_peer_find_or_create(struct win *w, int rank, struct win_peer **out)
{
    if (w->table_size) {
        struct win_peer *known = w->table[table_slot(w, rank)];
        if (likely(known != NULL)) {
            *out = known;
            return MPI_SUCCESS;
        }
    }
    if (2 * (w->table_used + 1) > w->table_size && !peers_grow(w))
        return win_error(w, MPI_ERR_NO_MEM, "out of memory: cannot reach rank %d", rank);
    struct win_peer *p;
    int rc = peer_new(w, rank, &p);
    if (rc)
        return rc;
    w->table[table_slot(w, rank)] = p;
    w->table_used++;
    *out = p;
    return MPI_SUCCESS;
}

int win_peer(struct win *w, int rank, struct win_peer **out)
{
    int rc = win_peer_find_or_create(w, rank, out);
    return likely(!rc && (*out)->known) || rc ? rc : peer_look_up_window(*out);
}

struct win_peer *win_peer_for_sender(struct win *w, int rank)
{
    struct win_peer *p = NULL;
    CHECK(rank >= 0 && rank < w->comm->size,
          "a one-sided operation names a rank that its window does not have");
    CHECK_MEMORY(win_peer_find_or_create(w, rank, &p) == 0, "a one-sided operation of another rank");
    return p;
}

void win_peers_close(struct win *w)
{
    for (uint32_t i = 0; i < w->table_size; i++) {
        struct win_peer *p = w->table[i];
        if (!p)
            continue;
        if (p->mapping)
            net_span_unmap(p->mapping, ALIGN_UP((size_t)p->at.size, (size_t)4096));
        if (p->import)
            gpu_release_import(p->import);
        far_close(p);
        adapter_atomics_close(p);
        counts_close(p);
        free(p->batch);
        free(p);
    }
    free(w->table);
}
