/* collectives.c: every collective in its blocking, nonblocking and persistent form, with buffers in all
 * kinds of memory; the results are compared byte by byte with those of the same call in host memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "area.h"

#define GUARD     64 /* bytes before and after each buffer that must not change */
#define RANKS_MAX 16

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
static const char *const forms[FORMS] = {"blocking", "nonblocking", "persistent"};

static int rank, size, errors;
static unsigned seeds;

/* Arguments and buffers of one collective call. */
struct call {
    const void *send;
    void *recv;
    int count, root;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
    enum form form;
    int sends[RANKS_MAX], send_at[RANKS_MAX], recvs[RANKS_MAX], recv_at[RANKS_MAX];
    int send_bytes_at[RANKS_MAX], recv_bytes_at[RANKS_MAX];
    MPI_Aint send_far_at[RANKS_MAX], recv_far_at[RANKS_MAX];
    MPI_Datatype types[RANKS_MAX];
};

/* Completes a request. Persistent requests run twice: in the second run the buffers contain the result of the
 * first run. */
static void complete_request(const struct call *c, MPI_Request *request)
{
    if (c->form == BLOCKING)
        return;
    if (c->form == PERSISTENT) {
        MPI_Start(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
        MPI_Start(request);
    }
    MPI_Wait(request, MPI_STATUS_IGNORE);
    if (c->form == PERSISTENT)
        MPI_Request_free(request);
}

#define DEFINE(function, name, iname, ...)                                    \
    static void function(const struct call *c)                                \
    {                                                                         \
        MPI_Request request = MPI_REQUEST_NULL;                               \
        if (c->form == BLOCKING)                                              \
            MPI_##name(__VA_ARGS__, c->comm);                                 \
        else if (c->form == NONBLOCKING)                                      \
            MPI_##iname(__VA_ARGS__, c->comm, &request);                      \
        else                                                                  \
            MPI_##name##_init(__VA_ARGS__, c->comm, MPI_INFO_NULL, &request); \
        complete_request(c, &request);                                        \
    }

DEFINE(bcast, Bcast, Ibcast, c->recv, c->count, c->type, c->root)
DEFINE(gather, Gather, Igather, c->send, c->count, c->type, c->recv, c->count, c->type, c->root)
DEFINE(gatherv, Gatherv, Igatherv, c->send, c->recvs[rank], c->type, c->recv, c->recvs, c->recv_at, c->type,
       c->root)
DEFINE(scatter, Scatter, Iscatter, c->send, c->count, c->type, c->recv, c->count, c->type, c->root)
DEFINE(scatterv, Scatterv, Iscatterv, c->send, c->recvs, c->recv_at, c->type, c->recv, c->recvs[rank],
       c->type, c->root)
DEFINE(allgather, Allgather, Iallgather, c->send, c->count, c->type, c->recv, c->count, c->type)
DEFINE(allgatherv, Allgatherv, Iallgatherv, c->send, c->recvs[rank], c->type, c->recv, c->recvs, c->recv_at,
       c->type)
DEFINE(alltoall, Alltoall, Ialltoall, c->send, c->count, c->type, c->recv, c->count, c->type)
DEFINE(alltoallv, Alltoallv, Ialltoallv, c->send, c->sends, c->send_at, c->type, c->recv, c->sends,
       c->recv_at, c->type)
DEFINE(alltoallw, Alltoallw, Ialltoallw, c->send, c->sends, c->send_bytes_at, c->types, c->recv, c->sends,
       c->recv_bytes_at, c->types)
DEFINE(reduce, Reduce, Ireduce, c->send, c->recv, c->count, c->type, c->op, c->root)
DEFINE(allreduce, Allreduce, Iallreduce, c->send, c->recv, c->count, c->type, c->op)
DEFINE(scan, Scan, Iscan, c->send, c->recv, c->count, c->type, c->op)
DEFINE(exscan, Exscan, Iexscan, c->send, c->recv, c->count, c->type, c->op)
DEFINE(reduce_scatter_block, Reduce_scatter_block, Ireduce_scatter_block, c->send, c->recv, c->count, c->type,
       c->op)
DEFINE(reduce_scatter, Reduce_scatter, Ireduce_scatter, c->send, c->recv, c->recvs, c->type, c->op)
DEFINE(neighbor_allgather, Neighbor_allgather, Ineighbor_allgather, c->send, c->count, c->type, c->recv,
       c->count, c->type)
DEFINE(neighbor_allgatherv, Neighbor_allgatherv, Ineighbor_allgatherv, c->send, c->count, c->type, c->recv,
       c->sends, c->recv_at, c->type)
DEFINE(neighbor_alltoall, Neighbor_alltoall, Ineighbor_alltoall, c->send, c->count, c->type, c->recv,
       c->count, c->type)
DEFINE(neighbor_alltoallv, Neighbor_alltoallv, Ineighbor_alltoallv, c->send, c->sends, c->send_at, c->type,
       c->recv, c->sends, c->recv_at, c->type)
DEFINE(neighbor_alltoallw, Neighbor_alltoallw, Ineighbor_alltoallw, c->send, c->sends, c->send_far_at,
       c->types, c->recv, c->sends, c->recv_far_at, c->types)

static void reduce_local(const struct call *c)
{
    MPI_Reduce_local(c->send, c->recv, c->count, c->type, c->op);
}

enum traits { MOVES = 0, REDUCES = 1, ROOTED = 2, IN_PLACE = 4, NEIGHBORS = 8, LOCAL = 16 };
static const struct {
    const char *name;
    void (*run)(const struct call *c);
    int traits;
} calls[] = {
    {"bcast", bcast, ROOTED},
    {"gather", gather, ROOTED | IN_PLACE},
    {"gatherv", gatherv, ROOTED | IN_PLACE},
    {"scatter", scatter, ROOTED},
    {"scatterv", scatterv, ROOTED},
    {"allgather", allgather, IN_PLACE},
    {"allgatherv", allgatherv, IN_PLACE},
    {"alltoall", alltoall, IN_PLACE},
    {"alltoallv", alltoallv, IN_PLACE},
    {"alltoallw", alltoallw, IN_PLACE},
    {"reduce", reduce, REDUCES | ROOTED | IN_PLACE},
    {"allreduce", allreduce, REDUCES | IN_PLACE},
    {"scan", scan, REDUCES | IN_PLACE},
    {"exscan", exscan, REDUCES | IN_PLACE},
    {"reduce_scatter_block", reduce_scatter_block, REDUCES | IN_PLACE},
    {"reduce_scatter", reduce_scatter, REDUCES | IN_PLACE},
    {"neighbor_allgather", neighbor_allgather, NEIGHBORS},
    {"neighbor_allgatherv", neighbor_allgatherv, NEIGHBORS},
    {"neighbor_alltoall", neighbor_alltoall, NEIGHBORS},
    {"neighbor_alltoallv", neighbor_alltoallv, NEIGHBORS},
    {"neighbor_alltoallw", neighbor_alltoallw, NEIGHBORS},
    {"reduce_local", reduce_local, REDUCES | LOCAL},
};
#define CALLS (sizeof(calls) / sizeof(*calls))

/* An operator that is not commutative: twice the left operand plus the right one, for both integers of an
 * element. */
static void fold_operator(void *in, void *inout, int *count, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    for (int i = 0; i < *count; i++) {
        unsigned *left = (unsigned *)((char *)in + i * extent);
        unsigned *right = (unsigned *)((char *)inout + i * extent);
        right[0] += 2 * left[0];
        right[2] += 2 * left[2];
    }
}

enum { PLAIN, HOLES, BLOCKS, LAYOUTS };
static MPI_Datatype moved[LAYOUTS], reduced[LAYOUTS];
static MPI_Op ops[LAYOUTS];
static MPI_Comm grid; /* a one-dimensional grid; the neighbour beyond each end is MPI_PROC_NULL */

static void make_types(void)
{
    const int lengths[4] = {3, 1, 4, 2}, places[4] = {0, 5, 7, 13};
    MPI_Type_contiguous(1, MPI_INT, &moved[PLAIN]);
    MPI_Type_vector(3, 2, 5, MPI_INT, &moved[HOLES]);
    MPI_Type_indexed(4, lengths, places, MPI_INT, &moved[BLOCKS]);
    for (int i = 0; i < LAYOUTS; i++)
        MPI_Type_commit(&moved[i]);
    reduced[PLAIN] = MPI_UNSIGNED;
    ops[PLAIN] = MPI_SUM;
    reduced[HOLES] = MPI_SHORT_INT; /* has 2 bytes of padding */
    ops[HOLES] = MPI_MAXLOC;
    MPI_Type_vector(2, 1, 2, MPI_UNSIGNED, &reduced[BLOCKS]);
    MPI_Type_commit(&reduced[BLOCKS]);
    MPI_Op_create(fold_operator, 0, &ops[BLOCKS]);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &(int){0}, 0, &grid);
}

static void free_types(void)
{
    for (int i = 0; i < LAYOUTS; i++)
        MPI_Type_free(&moved[i]);
    MPI_Type_free(&reduced[BLOCKS]);
    MPI_Op_free(&ops[BLOCKS]);
    MPI_Comm_free(&grid);
}

/* Sets counts and displacements: blocks of different sizes with gaps; in alltoallv the size depends on
 * both ranks. */
static void set_arrays(struct call *c, int traits, MPI_Aint extent)
{
    int send_at = 0, recv_at = 0;
    const int n = traits & NEIGHBORS ? 2 : size;
    for (int i = 0; i < n; i++) {
        c->types[i] = c->type;
        c->recvs[i] = c->count + i % 3;
        c->sends[i] = traits & NEIGHBORS ? c->count : c->count + (i + rank) % 2;
        c->send_at[i] = send_at;
        c->recv_at[i] = recv_at;
        c->send_bytes_at[i] = (int)(send_at * extent);
        c->recv_bytes_at[i] = (int)(recv_at * extent);
        c->send_far_at[i] = send_at * extent;
        c->recv_far_at[i] = recv_at * extent;
        send_at += c->sends[i] + (i % 2);
        recv_at += c->count + 2 + (i % 2);
    }
}

static void compare_areas(const struct area *got, const struct area *wanted, const char *what,
                          const char *buffer)
{
    char *bytes = malloc(got->size);
    area_read(got, 0, bytes, got->size);
    for (size_t i = 0; i < got->size; i++)
        if (bytes[i] != wanted->at[i]) {
            printf("rank %d: %s: byte %zu of %zu of the %s buffer is 0x%02x, in host memory 0x%02x\n", rank,
                   what, i, got->size, buffer, (unsigned char)bytes[i], (unsigned char)wanted->at[i]);
            errors++;
            break;
        }
    free(bytes);
}

static void run_call(size_t which, enum form form, int layout, int count, enum area_kind send_kind,
                     enum area_kind recv_kind, int in_place)
{
    const int traits = calls[which].traits;
    struct call c = {.count = count,
                     .form = form,
                     .root = traits & ROOTED ? size - 1 : 0,
                     .type = traits & REDUCES ? reduced[layout] : moved[layout],
                     .op = ops[layout],
                     .comm = traits & NEIGHBORS ? grid : MPI_COMM_WORLD};
    MPI_Aint lb, extent;
    char what[160];
    MPI_Type_get_extent(c.type, &lb, &extent);
    set_arrays(&c, traits, extent);
    const size_t room = (size_t)(extent * (size + 1) * (count + 4)) + 2 * GUARD;
    struct area send = area_alloc(send_kind, room), recv = area_alloc(recv_kind, room);
    struct area host_send = area_alloc(AREA_HOST, room), host_recv = area_alloc(AREA_HOST, room);
    const unsigned seed = 100 * ++seeds + (unsigned)rank;
    area_fill(&send, seed);
    area_fill(&host_send, seed);
    area_fill(&recv, seed + 50);
    area_fill(&host_recv, seed + 50);
    snprintf(what, sizeof(what), "%s %s, %s to %s%s, layout %d, %d elements", forms[form], calls[which].name,
             area_names[send_kind], area_names[recv_kind], in_place ? ", in place" : "", layout, count);
    const int here = in_place && (!(traits & ROOTED) || rank == c.root);
    c.send = here ? MPI_IN_PLACE : send.at + GUARD;
    c.recv = recv.at + GUARD;
    calls[which].run(&c);
    c.send = here ? MPI_IN_PLACE : host_send.at + GUARD;
    c.recv = host_recv.at + GUARD;
    calls[which].run(&c);
    compare_areas(&send, &host_send, what, "send");
    compare_areas(&recv, &host_recv, what, "receive");
    area_free(&send);
    area_free(&recv);
    area_free(&host_send);
    area_free(&host_recv);
}

/* Runs every call with every kind of memory in turn; ranks use different kinds at the same time. */
static void test_all_calls(int count, int layouts)
{
    for (size_t which = 0; which < CALLS; which++)
        for (int form = 0; form < FORMS; form++)
            for (int layout = 0; layout < layouts; layout++) {
                if (calls[which].traits & LOCAL && form != BLOCKING)
                    continue;
                const unsigned turn = seeds + (unsigned)(form + layout);
                const enum area_kind from = (enum area_kind)((turn + (unsigned)rank) % AREA_KINDS);
                const enum area_kind to = (enum area_kind)((turn / 3 + 2 * (unsigned)rank + 1) % AREA_KINDS);
                run_call(which, (enum form)form, layout, count, AREA_DEVICE, AREA_DEVICE, 0);
                run_call(which, (enum form)form, layout, count, from, to, 0);
                if (calls[which].traits & IN_PLACE)
                    run_call(which, (enum form)form, layout, count, AREA_HOST,
                             to == AREA_HOST ? AREA_DEVICE : to, 1);
            }
}

/* Reductions on an intercommunicator: the data of each group is reduced at the other group. */
static void test_intercommunicator(void)
{
    MPI_Comm half, both;
    int sum = 0, wanted = 0;
    if (size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 1, &both);
    struct area in = area_alloc(AREA_DEVICE, sizeof(int)), out = area_alloc(AREA_DEVICE, sizeof(int));
    area_write(&in, 0, &rank, sizeof(rank));
    MPI_Allreduce(in.at, out.at, 1, MPI_INT, MPI_SUM, both);
    area_read(&out, 0, &sum, sizeof(sum));
    for (int i = 1 - rank % 2; i < size; i += 2)
        wanted += i;
    if (sum != wanted) {
        printf("rank %d: sum over an intercommunicator is %d, expected %d\n", rank, sum, wanted);
        errors++;
    }
    area_free(&in);
    area_free(&out);
    MPI_Comm_free(&half);
    MPI_Comm_free(&both);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!area_load_cuda()) {
        MPI_Finalize();
        return 77;
    }
    make_types();
    test_all_calls(1, LAYOUTS);
    test_all_calls(60, LAYOUTS);
    test_all_calls(40000, 1);
    test_intercommunicator();
    free_types();
    MPI_Finalize();
    return errors ? 1 : 0;
}
