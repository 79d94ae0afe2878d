/* dist_graph.c: distributed graphs. In the general form every process may declare any edge, so each edge is
 * sent to the two processes that it connects, and no process knows the number of messages to expect. Each
 * process sends synchronously and joins the creation of the communicator when its own messages have been
 * matched. So all messages have been matched when the creation is complete.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "obj/create.h"
#include "obj/hints.h"
#include "obj/topo_create.h"

/* One end of an edge, as sent to the process that owns it. */
struct edge_end {
    int32_t owner;    /* the process whose neighbour list gets this end */
    int32_t incoming; /* 1: `other` sends to the owner; 0: the owner sends to it */
    int32_t other;
    int32_t weight;
    int32_t declared_by; /* the process that declared the edge; neighbours are ordered by it */
    int32_t number;      /* position among the edges that this process declared */
};

struct ends {
    struct edge_end *list;
    size_t count, capacity;
};

static int no_memory(void)
{
    return err_set(MPI_ERR_NO_MEM, "out of memory for the edges of a graph");
}

static int ends_reserve(struct ends *e, size_t more)
{
    if (e->count + more <= e->capacity)
        return MPI_SUCCESS;
    size_t capacity = MAX(2 * e->capacity, e->count + more);
    struct edge_end *list = realloc(e->list, capacity * sizeof(*list));
    if (!list)
        return no_memory();
    e->list = list;
    e->capacity = capacity;
    return MPI_SUCCESS;
}

static int dist_graph_compare_by_owner(const void *a, const void *b)
{
    const struct edge_end *x = a, *y = b;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int dist_graph_compare_by_sender(const void *a, const void *b)
{
    const struct edge_end *x = a, *y = b;
    if (x->declared_by != y->declared_by)
        return x->declared_by < y->declared_by ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int build_same_group(struct creation *c)
{
    return creation_build_comm(c, group_retain(c->parent->group), NULL);
}

/* Checks a list of the user's neighbours and their weights. */
static int check_edges(const struct comm *c, const char *what, int64_t n, const int *ranks,
                       const int *weights)
{
    if (n < 0)
        return err_set(MPI_ERR_ARG, "the number of %s is %lld; it must not be negative", what, (long long)n);
    if (n > 0 && !ranks)
        return err_set(MPI_ERR_ARG, "%s is a null pointer", what);
    if (n > 0 && (!weights || weights == MPI_WEIGHTS_EMPTY))
        return err_set(MPI_ERR_ARG, "the weights of %s are missing", what);
    for (int64_t i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= c->size)
            return err_set(MPI_ERR_ARG, "%s[%lld] is %d; the communicator's ranks are 0 to %d", what,
                           (long long)i, ranks[i], c->size - 1);
        if (weights != MPI_UNWEIGHTED && weights[i] < 0)
            return err_set(MPI_ERR_ARG, "weight %lld of %s is %d; it must not be negative", (long long)i,
                           what, weights[i]);
    }
    return MPI_SUCCESS;
}

/* Converts user weights for topology_dist(): NULL for an unweighted graph, MPI_WEIGHTS_EMPTY for a null
 * pointer (an empty list). */
static const int *weights_or_null(const int *weights)
{
    return weights == MPI_UNWEIGHTED ? NULL : weights ? weights : MPI_WEIGHTS_EMPTY;
}

int dist_graph_create_adjacent(struct comm *parent, int indegree, const int *sources,
                               const int *source_weights, int outdegree, const int *destinations,
                               const int *destination_weights, struct info *info, struct comm **out)
{
    struct creation *c;
    struct topology *t = NULL;
    int rc = comm_check_intra(parent);
    rc = rc ? rc : creation_open(parent, "graph on", build_same_group, &c);
    if (rc)
        return rc;
    rc = check_edges(parent, "sources", indegree, sources, source_weights);
    if (!rc)
        rc = check_edges(parent, "destinations", outdegree, destinations, destination_weights);
    if (!rc)
        rc = topology_dist(indegree, sources, weights_or_null(source_weights), outdegree, destinations,
                           weights_or_null(destination_weights), &t);
    c->agree.local_error = rc;
    rc = creation_run(c, out);
    if (rc) {
        topology_release(t);
        return rc;
    }
    (*out)->topology = t;
    return hints_apply(&(*out)->info, info);
}

/* Collects both ends of every edge that this process declared. */
static int graph_collect_edges(struct comm *c, int n, const int *sources, const int *degrees,
                               const int *destinations, const int *weights, struct ends *declared)
{
    int64_t total = 0;
    int rc = check_edges(c, "sources", n, sources, MPI_UNWEIGHTED);
    if (!rc && n > 0 && !degrees)
        rc = err_set(MPI_ERR_ARG, "degrees is a null pointer");
    for (int i = 0; i < n && !rc; i++) {
        if (degrees[i] < 0)
            return err_set(MPI_ERR_ARG, "degrees[%d] is %d; it must not be negative", i, degrees[i]);
        total += degrees[i];
    }
    if (!rc)
        rc = check_edges(c, "destinations", total, destinations, weights);
    if (!rc)
        rc = ends_reserve(declared, 2 * (size_t)total + 1);
    int64_t at = 0;
    for (int i = 0; i < n && !rc; i++) {
        for (int k = 0; k < degrees[i]; k++, at++) {
            struct edge_end e = {.owner = sources[i],
                                 .other = destinations[at],
                                 .weight = weights != MPI_UNWEIGHTED ? weights[at] : 0};
            e.declared_by = c->rank;
            e.number = (int32_t)at;
            declared->list[declared->count++] = e;
            e.owner = destinations[at];
            e.other = sources[i];
            e.incoming = 1;
            declared->list[declared->count++] = e;
        }
    }
    if (!rc)
        qsort(declared->list, declared->count, sizeof(*declared->list), dist_graph_compare_by_owner);
    return rc;
}

/* Receives every edge message that has arrived. */
static int receive_arrived_ends(struct comm *c, int tag, struct ends *mine)
{
    struct p2p *p2p = c->proc->p2p;
    MPI_Status status;
    struct message *m;
    while ((m = p2p_improbe(p2p, comm_coll_envelope(c, MPI_ANY_SOURCE, tag), &status)) != NULL) {
        size_t count = (size_t)status_bytes(&status) / sizeof(struct edge_end);
        struct request *r;
        int rc = ends_reserve(mine, count);
        if (!rc)
            rc = p2p_imrecv(p2p, m, mine->list + mine->count, status_bytes(&status),
                            dtype_from_handle(MPI_BYTE), &r);
        if (rc)
            return rc;
        rc = p2p_wait(p2p, r);
        request_free(r);
        if (rc)
            return rc;
        mine->count += count;
    }
    return MPI_SUCCESS;
}

struct outbox {
    struct request **requests;
    int count;
};

/* Sends one synchronous message to every other process that owns an end. */
static int send_declared_ends(struct comm *c, int tag, struct ends *declared, struct ends *mine,
                              struct outbox *out)
{
    int rc = MPI_SUCCESS;
    out->requests = malloc((declared->count + 1) * sizeof(struct request *));
    if (!out->requests)
        return no_memory();
    for (size_t i = 0, next; i < declared->count && !rc; i = next) {
        int owner = declared->list[i].owner;
        for (next = i; next < declared->count && declared->list[next].owner == owner;)
            next++;
        size_t bytes = (next - i) * sizeof(struct edge_end);
        struct peer *peer;
        if (owner == c->rank) {
            rc = ends_reserve(mine, next - i);
            if (!rc)
                memcpy(mine->list + mine->count, declared->list + i, bytes);
            mine->count += rc ? 0 : next - i;
            continue;
        }
        rc = comm_get_peer(c, owner, &peer);
        if (!rc)
            rc = p2p_isend(c->proc->p2p, declared->list + i, (MPI_Count)bytes, dtype_from_handle(MPI_BYTE),
                           peer, comm_coll_envelope(c, c->rank, tag), SEND_SYNCHRONOUS,
                           &out->requests[out->count]);
        out->count += rc ? 0 : 1;
    }
    return rc;
}

static bool has_completed_sends(struct outbox *out)
{
    while (out->count > 0) {
        struct request *r = out->requests[out->count - 1];
        if (!atomic_load_explicit(&r->complete, memory_order_acquire))
            return false;
        request_free(r);
        out->count--;
    }
    return true;
}

/* Runs the exchange; the agreement that ends it also creates the communicator. */
static int graph_exchange_ends(struct comm *c, struct ends *declared, struct ends *mine, int local_error,
                               struct comm **out)
{
    struct creation *create;
    struct outbox sent = {0};
    int rc = creation_open(c, "graph on", build_same_group, &create);
    if (rc)
        return rc;
    int tag = create->agree.round.gang.tag - ASSEMBLY_TAG_FIRST + ASSEMBLY_TAG_EDGES;
    if (!local_error)
        local_error = send_declared_ends(c, tag, declared, mine, &sent);
    struct net_waiter waiter = {.awaited_kind = NET_FLAG, .awaited = &create->request.complete};
    for (bool started = false;;) {
        int taken = receive_arrived_ends(c, tag, mine);
        if (taken && !local_error)
            local_error = taken;
        if (!started && has_completed_sends(&sent)) {
            create->agree.local_error = local_error;
            creation_start(create);
            started = true;
        }
        if (started && atomic_load_explicit(&create->request.complete, memory_order_acquire))
            break;
        net_wait_step(c->proc->net, &waiter);
    }
    net_wait_end(c->proc->net, &waiter);
    free(sent.requests);
    rc = create->request.error;
    if (!rc)
        *out = create->made;
    request_free(&create->request);
    return rc ? rc : local_error;
}

static int topology_from_ends(struct ends *mine, bool weighted, struct topology **out)
{
    int *lists = malloc((4 * mine->count + 1) * sizeof(*lists));
    if (!lists)
        return no_memory();
    int *sources = lists, *source_weights = sources + mine->count;
    int *targets = source_weights + mine->count, *target_weights = targets + mine->count;
    int in = 0, outgoing = 0;
    if (mine->count > 0)
        qsort(mine->list, mine->count, sizeof(*mine->list), dist_graph_compare_by_sender);
    for (size_t i = 0; i < mine->count; i++) {
        const struct edge_end *e = &mine->list[i];
        if (e->incoming) {
            sources[in] = e->other;
            source_weights[in++] = e->weight;
        } else {
            targets[outgoing] = e->other;
            target_weights[outgoing++] = e->weight;
        }
    }
    int rc = topology_dist(in, sources, weighted ? source_weights : NULL, outgoing, targets,
                           weighted ? target_weights : NULL, out);
    free(lists);
    return rc;
}

int dist_graph_create(struct comm *parent, int n, const int *sources, const int *degrees,
                      const int *destinations, const int *weights, struct info *info, struct comm **out)
{
    struct ends declared = {0}, mine = {0};
    int rc = comm_check_intra(parent);
    if (rc)
        return rc;
    int local_error = graph_collect_edges(parent, n, sources, degrees, destinations, weights, &declared);
    struct comm *made = NULL;
    rc = graph_exchange_ends(parent, &declared, &mine, local_error, &made);
    if (!rc)
        rc = topology_from_ends(&mine, weights != MPI_UNWEIGHTED, &made->topology);
    free(declared.list);
    free(mine.list);
    if (!rc)
        rc = hints_apply(&made->info, info);
    if (rc && made)
        comm_release(made);
    if (!rc)
        *out = made;
    return rc;
}
