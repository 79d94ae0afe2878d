/* problem.c: inputs and expected results of every kind of collective.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct describe_neighborhood {
    int sources[RANKS_MAX * 2], destinations[RANKS_MAX * 2], order[RANKS_MAX * 2];
    int nsources, ndestinations;
};

struct setup {
    struct machine m;
    int64_t starts[2][RANKS_MAX + 1];
    struct describe_neighborhood hood[RANKS_MAX];
};

static int group_of_process(const struct setup *s, int proc)
{
    return proc >= s->m.size;
}
static int rank_of_process(const struct setup *s, int proc)
{
    return proc >= s->m.size ? proc - s->m.size : proc;
}

/* Block sizes of a reduce_scatter by pattern: all equal, some empty, growing, everything at one rank. Both
 * groups need the same total. */
static int64_t block_items(const struct problem *p, int rank, int size, int64_t total)
{
    switch (p->pattern) {
    case 0:
        return p->remote_size ? (rank + 1 == size ? total - (total / size) * (size - 1) : total / size)
                              : p->count;
    case 1:
        return rank % 3 == 0 ? p->count : 0;
    case 2:
        return rank % 4;
    default:
        return rank == size / 2 ? p->count : 0;
    }
}

/* Describes the neighbourhood by pattern: a periodic ring or row of a Cartesian grid, a grid of 2 x n/2, a
 * directed circulant graph with duplicate edges. */
static void describe_neighborhood(const struct problem *p, int rank, struct describe_neighborhood *h)
{
    const int n = p->size;
    memset(h, 0, sizeof(*h));
    if (p->pattern == 0 || p->pattern == 1) {
        int left = rank - 1, right = rank + 1;
        if (p->pattern == 0) {
            left = (left + n) % n;
            right %= n;
        } else if (right == n) {
            right = -1;
        }
        h->sources[0] = h->destinations[0] = left < 0 ? -1 : left;
        h->sources[1] = h->destinations[1] = right;
        h->order[0] = 1;
        h->order[1] = 0;
        h->nsources = h->ndestinations = 2;
        return;
    }
    static const int hops[] = {1, 3, 1, 0};
    for (int i = 0; i < 4; i++) {
        h->destinations[i] = (rank + hops[i]) % n;
        h->sources[i] = ((rank - hops[i]) % n + n) % n;
        h->order[i] = i;
    }
    h->nsources = h->ndestinations = 4;
}

static void fill_items(struct setup *s, int proc, enum sched_buf buf, int64_t at, int64_t n, int64_t item)
{
    for (int64_t i = 0; i < n; i++)
        machine_set(&s->m, proc, buf, at + i, proc, item + i);
}

/* Allocates a send buffer of `sent` items and a receive buffer of `received` items. In place there is no send
 * buffer, and the input is at item `at` of the receive buffer. */
static void set_buffers(struct setup *s, const struct problem *p, int proc, int64_t sent, int64_t received,
                        int64_t at)
{
    machine_buffer(&s->m, proc, BUF_SEND, p->in_place ? 0 : sent, true);
    machine_buffer(&s->m, proc, BUF_RECV, received, false);
    if (p->in_place)
        fill_items(s, proc, BUF_RECV, at, sent, 0);
    else
        fill_items(s, proc, BUF_SEND, 0, sent, 0);
}

/* In rooted operations only the root can be in place. */
static void set_rooted_buffers(struct setup *s, const struct problem *p, int proc, struct coll_shape *shape)
{
    const bool root = proc == p->root, leaf = p->remote_size ? group_of_process(s, proc) == 1 : true;
    const int64_t many = p->remote_size ? p->remote_size : p->size;
    shape->in_place = p->in_place && root;
    if (p->algorithm->kind == COLL_GATHER) {
        machine_buffer(&s->m, proc, BUF_SEND, leaf && !shape->in_place, true);
        machine_buffer(&s->m, proc, BUF_RECV, root ? many : 0, false);
        if (shape->in_place)
            fill_items(s, proc, BUF_RECV, proc, 1, 0);
        else if (leaf)
            fill_items(s, proc, BUF_SEND, 0, 1, 0);
    } else {
        machine_buffer(&s->m, proc, BUF_SEND, root ? many : 0, true);
        machine_buffer(&s->m, proc, BUF_RECV, leaf && !shape->in_place, false);
        if (root)
            fill_items(s, proc, BUF_SEND, 0, many, 0);
    }
}

static void set_reduce_buffers(struct setup *s, const struct problem *p, int proc, struct coll_shape *shape)
{
    const bool root = proc == p->root, leaf = p->remote_size ? group_of_process(s, proc) == 1 : true;
    struct problem here = *p;
    here.in_place = shape->in_place = p->in_place && root;
    set_buffers(s, &here, proc, leaf ? p->count : 0, root ? p->count : 0, 0);
}

static void prepare_process(struct setup *s, const struct problem *p, int proc)
{
    struct coll_shape *shape = &s->m.procs[proc].shape;
    const int g = group_of_process(s, proc), rank = rank_of_process(s, proc),
              size = g ? p->remote_size : p->size;
    const int peers = !p->remote_size ? size : g ? p->size : p->remote_size;
    *shape = (struct coll_shape){.kind = p->algorithm->kind,
                                 .rank = rank,
                                 .size = size,
                                 .root = p->root,
                                 .remote_size = p->remote_size ? peers : 0,
                                 .count = p->count,
                                 .in_place = p->in_place,
                                 .commutative = p->commutative,
                                 .adjacent = p->adjacent,
                                 .segment = p->segment,
                                 .window = p->window};
    memcpy(shape->parameter, p->parameter, sizeof(shape->parameter));
    if (p->remote_size && g == 0)
        shape->root = proc == p->root ? ROOT_SELF : ROOT_NONE;
    switch (shape->kind) {
    case COLL_BCAST:
        machine_buffer(&s->m, proc, BUF_RECV, p->count, proc == p->root);
        if (proc == p->root)
            fill_items(s, proc, BUF_RECV, 0, p->count, 0);
        break;
    case COLL_GATHER:
    case COLL_SCATTER:
        set_rooted_buffers(s, p, proc, shape);
        break;
    case COLL_ALLGATHER:
        set_buffers(s, p, proc, 1, peers, rank);
        break;
    case COLL_ALLTOALL:
        set_buffers(s, p, proc, peers, peers, 0);
        break;
    case COLL_REDUCE:
        set_reduce_buffers(s, p, proc, shape);
        break;
    case COLL_ALLREDUCE:
    case COLL_SCAN:
    case COLL_EXSCAN:
        set_buffers(s, p, proc, p->count, p->count, 0);
        break;
    case COLL_REDUCE_SCATTER: {
        const int64_t *starts = s->starts[g], total = starts[size];
        shape->starts = starts;
        set_buffers(s, p, proc, total, p->in_place ? total : starts[rank + 1] - starts[rank], 0);
        break;
    }
    case COLL_NEIGHBOR_ALLGATHER:
    case COLL_NEIGHBOR_ALLTOALL: {
        struct describe_neighborhood *h = &s->hood[proc];
        shape->sources = h->sources;
        shape->destinations = h->destinations;
        shape->receive_order = h->order;
        shape->nsources = h->nsources;
        shape->ndestinations = h->ndestinations;
        set_buffers(s, p, proc, shape->kind == COLL_NEIGHBOR_ALLGATHER ? 1 : h->ndestinations, h->nsources,
                    0);
        break;
    }
    default:
        break;
    }
}

static void expect_item(struct setup *s, int proc, int64_t at, int rank, int64_t item)
{
    const struct value *v = &s->m.procs[proc].mem[BUF_RECV].v[at];
    if (v->n != 1 || v->rank[0] != rank || v->item != item)
        machine_fail(&s->m, "rank %d: recv[%lld] holds item %d of rank %d, expected item %lld of rank %d",
                     proc, (long long)at, v->item, v->n ? v->rank[0] : -1, (long long)item, rank);
}

/* Expects item `item` of the contributions of processes first .. last - 1, combined in this order unless
 * the operator commutes. */
static void expect_sum(struct setup *s, const struct problem *p, int proc, int64_t at, int64_t item,
                       int first, int last)
{
    const struct value *v = &s->m.procs[proc].mem[BUF_RECV].v[at];
    uint64_t seen[2] = {0, 0};
    if (v->n != last - first || v->item != item)
        machine_fail(&s->m, "rank %d: recv[%lld] holds element %d of %d ranks, expected element %lld of %d",
                     proc, (long long)at, v->item, v->n, (long long)item, last - first);
    for (int i = 0; i < v->n && !s->m.error[0]; i++) {
        uint64_t bit = 1ull << (v->rank[i] % 64);
        if (!p->commutative && v->rank[i] != first + i)
            machine_fail(&s->m, "rank %d: operand %d of element %lld is rank %d's, expected rank %d's", proc,
                         i, (long long)item, v->rank[i], first + i);
        if (seen[v->rank[i] / 64] & bit)
            machine_fail(&s->m, "rank %d: element %lld has rank %d's contribution twice", proc,
                         (long long)item, v->rank[i]);
        seen[v->rank[i] / 64] |= bit;
    }
}

/* Returns the sender's block that arrives on edge `slot` of `proc`. */
static int edge_block(const struct setup *s, const struct problem *p, int proc, int slot)
{
    const int source = s->hood[proc].sources[slot];
    if (p->algorithm->kind == COLL_NEIGHBOR_ALLGATHER)
        return 0;
    if (p->pattern < 2)
        return slot ^ 1; /* data from the left neighbour was sent to its right neighbour */
    int nth = 0;
    for (int i = 0; i < slot; i++)
        nth += s->hood[proc].sources[i] == source;
    for (int i = 0; i < s->hood[source].ndestinations; i++)
        if (s->hood[source].destinations[i] == proc && nth-- == 0)
            return i;
    return -1;
}

static void verify_process(struct setup *s, const struct problem *p, int proc)
{
    const int g = group_of_process(s, proc), rank = rank_of_process(s, proc),
              size = g ? p->remote_size : p->size;
    const int peers = !p->remote_size ? size : g ? p->size : p->remote_size;
    /* The processes from which this process receives: its own group, or the other group of an
     * intercommunicator. */
    const int first = p->remote_size && g == 0 ? p->size : 0, last = first + peers;
    const struct coll_shape *shape = &s->m.procs[proc].shape;
    const uint64_t all[2] = {p->size == 64 ? ~0ull : (1ull << p->size) - 1, (1ull << p->remote_size) - 1};
    switch (shape->kind) {
    case COLL_BARRIER:
        if (s->m.procs[proc].arrived[0] != all[0] || s->m.procs[proc].arrived[1] != all[1])
            machine_fail(&s->m, "rank %d leaves before everyone has arrived", proc);
        break;
    case COLL_BCAST:
        for (int64_t i = 0; i < p->count && (!p->remote_size || g == 1); i++)
            expect_item(s, proc, i, p->root, i);
        break;
    case COLL_GATHER:
        for (int r = first; r < last && proc == p->root; r++)
            expect_item(s, proc, r - first, r, 0);
        break;
    case COLL_SCATTER:
        if (!shape->in_place && (!p->remote_size || g == 1))
            expect_item(s, proc, 0, p->root, rank);
        break;
    case COLL_ALLGATHER:
        for (int r = first; r < last; r++)
            expect_item(s, proc, r - first, r, 0);
        break;
    case COLL_ALLTOALL:
        for (int r = first; r < last; r++)
            expect_item(s, proc, r - first, r, rank);
        break;
    case COLL_REDUCE:
        for (int64_t i = 0; i < p->count && proc == p->root; i++)
            expect_sum(s, p, proc, i, i, first, last);
        break;
    case COLL_ALLREDUCE:
        for (int64_t i = 0; i < p->count; i++)
            expect_sum(s, p, proc, i, i, first, last);
        break;
    case COLL_SCAN:
    case COLL_EXSCAN:
        for (int64_t i = 0; i < p->count && (shape->kind == COLL_SCAN || rank > 0); i++)
            expect_sum(s, p, proc, i, i, 0, shape->kind == COLL_SCAN ? rank + 1 : rank);
        break;
    case COLL_REDUCE_SCATTER: {
        const int64_t *starts = s->starts[g];
        for (int64_t i = starts[rank]; i < starts[rank + 1]; i++)
            expect_sum(s, p, proc, i - starts[rank], i, first, last);
        break;
    }
    case COLL_NEIGHBOR_ALLGATHER:
    case COLL_NEIGHBOR_ALLTOALL:
        for (int i = 0; i < s->hood[proc].nsources; i++)
            if (s->hood[proc].sources[i] >= 0)
                expect_item(s, proc, i, s->hood[proc].sources[i], edge_block(s, p, proc, i));
        break;
    default:
        break;
    }
}

static void make_blocks(struct setup *s, const struct problem *p)
{
    for (int g = 0; g < 2; g++) {
        int size = g ? p->remote_size : p->size;
        s->starts[g][0] = 0;
        for (int r = 0; r < size; r++)
            s->starts[g][r + 1] = s->starts[g][r] + block_items(p, r, size, p->count);
    }
}

bool problem_check(const struct problem *p, bool print)
{
    static struct setup s;
    machine_open(&s.m, p->size, p->remote_size);
    make_blocks(&s, p);
    if (p->algorithm->kind >= COLL_NEIGHBOR_ALLGATHER)
        for (int proc = 0; proc < p->size; proc++)
            describe_neighborhood(p, proc, &s.hood[proc]);
    for (int proc = 0; proc < s.m.nprocs; proc++) {
        prepare_process(&s, p, proc);
        p->algorithm->generate(&s.m.procs[proc].shape, &s.m.procs[proc].sched);
        if (print)
            sched_print(&s.m.procs[proc].sched, proc);
    }
    if (machine_run(&s.m))
        for (int proc = 0; proc < s.m.nprocs; proc++)
            verify_process(&s, p, proc);
    bool ok = !s.m.error[0];
    if (!ok)
        printf(
            "FAIL %s=%s: %d%s%d ranks, root %d, count %lld, segment %lld, window %d, parameters %d %d%s%s%s, "
            "pattern %d\n     %s\n",
            coll_kind_name(p->algorithm->kind), p->algorithm->name, p->size, p->remote_size ? " + " : " + ",
            p->remote_size, p->root, (long long)p->count, (long long)p->segment, p->window, p->parameter[0],
            p->parameter[1], p->in_place ? ", in place" : "", p->commutative ? "" : ", ordered",
            p->adjacent ? "" : ", scattered", p->pattern, s.m.error);
    machine_close(&s.m);
    return ok;
}
