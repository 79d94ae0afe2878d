/* comms.c: caches the size, the neighbours and the world ranks of each communicator until it is freed. A
 * program may not free a communicator during a call on it, so cached data stay valid during the call.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "prof.h"

enum { BUCKETS = 64 };

struct facts {
    struct facts *next;
    MPI_Comm comm;
    int rank, size, remote; /* remote: size of the remote group; without one, size of the group */
    int in, out;            /* number of neighbours in the topology */
    bool inter;
    int *world; /* world rank of each peer; NULL: the same numbers */
};

static struct facts *table[BUCKETS];
static MPI_Group world = MPI_GROUP_NULL;

void prof_comm_world(MPI_Group group)
{
    PROF_SET(world, group);
}

static struct facts **comms_find_slot(MPI_Comm comm)
{
    struct facts **at = &table[((uintptr_t)comm >> 4 ^ (uintptr_t)comm >> 12 ^ (uintptr_t)comm) % BUCKETS];
    while (*at && (*at)->comm != comm)
        at = &(*at)->next;
    return at;
}

static void comms_query_neighbours(struct facts *f)
{
    int kind = MPI_UNDEFINED, n = 0, weighted;
    if (f->inter || PMPI_Topo_test(f->comm, &kind) != MPI_SUCCESS)
        return;
    if (kind == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(f->comm, &f->in, &f->out, &weighted);
    } else if (kind == MPI_CART) {
        PMPI_Cartdim_get(f->comm, &n);
        f->in = f->out = 2 * n;
    } else if (kind == MPI_GRAPH) {
        PMPI_Graph_neighbors_count(f->comm, f->rank, &n);
        f->in = f->out = n;
    }
}

/* Returns the world ranks of the peers; NULL if they are the same numbers. */
static int *comms_translate_ranks(const struct facts *f)
{
    MPI_Group group;
    bool same = true;
    int *ranks = malloc(2 * (size_t)f->remote * sizeof(*ranks) + 1), *found;
    if (!ranks)
        abort();
    found = ranks + f->remote;
    for (int i = 0; i < f->remote; i++) {
        ranks[i] = i;
        found[i] = PROF_OUTSIDE;
    }
    const MPI_Group all = PROF_GET(world);
    if (all != MPI_GROUP_NULL) {
        if (f->inter)
            PMPI_Comm_remote_group(f->comm, &group);
        else
            PMPI_Comm_group(f->comm, &group);
        PMPI_Group_translate_ranks(group, f->remote, ranks, all, found);
        PMPI_Group_free(&group);
    }
    for (int i = 0; i < f->remote; i++) {
        ranks[i] = found[i] >= 0 && found[i] < prof.size ? found[i] : PROF_OUTSIDE;
        same = same && ranks[i] == i;
    }
    if (!same)
        return ranks;
    free(ranks);
    return NULL;
}

static struct facts *comms_query(MPI_Comm comm)
{
    struct facts *f = calloc(1, sizeof(*f));
    int inter = 0;
    if (!f)
        abort();
    f->comm = comm;
    PMPI_Comm_test_inter(comm, &inter);
    f->inter = inter != 0;
    PMPI_Comm_rank(comm, &f->rank);
    PMPI_Comm_size(comm, &f->size);
    f->remote = f->size;
    if (f->inter)
        PMPI_Comm_remote_size(comm, &f->remote);
    comms_query_neighbours(f);
    f->world = comms_translate_ranks(f);
    return f;
}

static void free_comm_facts(struct facts *f)
{
    if (f)
        free(f->world);
    free(f);
}

static const struct facts *comms_get_facts(MPI_Comm comm)
{
    bool locked = prof_lock();
    struct facts *f = *comms_find_slot(comm);
    prof_unlock(locked);
    if (f)
        return f;
    struct facts *found = comms_query(comm);
    locked = prof_lock();
    struct facts **at = comms_find_slot(comm);
    if (!*at) {
        *at = found;
        found = NULL;
    }
    f = *at;
    prof_unlock(locked);
    free_comm_facts(found); /* another thread inserted the communicator first */
    return f;
}

void prof_comm_freed(MPI_Comm comm)
{
    bool locked = prof_lock();
    struct facts **at = comms_find_slot(comm), *old = *at;
    if (old)
        *at = old->next;
    prof_unlock(locked);
    free_comm_facts(old);
}

int prof_peers(MPI_Comm comm)
{
    return comms_get_facts(comm)->remote;
}

int prof_comm_size(MPI_Comm comm)
{
    return comms_get_facts(comm)->size;
}

bool prof_is_world(MPI_Comm comm)
{
    const struct facts *f = comms_get_facts(comm);
    return !f->inter && f->size == prof.size;
}

int prof_in_degree(MPI_Comm comm)
{
    return comms_get_facts(comm)->in;
}

int prof_out_degree(MPI_Comm comm)
{
    return comms_get_facts(comm)->out;
}

/* True if this rank has the role in a rooted collective. In an intercommunicator only the root is
 * PROF_ROOT; in an intracommunicator the root is a leaf as well. */
bool prof_has_role(MPI_Comm comm, int root, int role)
{
    const struct facts *f = comms_get_facts(comm);
    if (!f->inter)
        return role == PROF_LEAF || root == f->rank;
    if (root == MPI_PROC_NULL)
        return false;
    return role == (root == MPI_ROOT ? PROF_ROOT : PROF_LEAF);
}

int prof_world_rank(MPI_Comm comm, int rank)
{
    if (rank == MPI_PROC_NULL)
        return PROF_NOBODY;
    const struct facts *f = comms_get_facts(comm);
    if (rank < 0 || rank >= f->remote)
        return PROF_OUTSIDE;
    if (f->world)
        return f->world[rank];
    return rank;
}
