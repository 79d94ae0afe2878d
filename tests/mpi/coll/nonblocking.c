/* nonblocking.c: many collectives in flight on one communicator, completed in a different order at each
 * rank, with datatypes and operators freed while the collectives run.
 *
 * ranks: 1 2 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

#define ROUNDS 12
#define FORMS  17
#define N      40

static void add_elements(void *in, void *inout, int *n, MPI_Datatype *type)
{
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

struct collective_buffers {
    int send[64 * N], recv[64 * N], counts[64], displs[64], bytes[64];
    MPI_Datatype types[64];
};

static void start_collective(struct collective_buffers *f, int form, int root, MPI_Request *request)
{
    const int n = mpitest_size;
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Type_contiguous(1, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add_elements, 1, &op);
    for (int i = 0; i < 64 * N; i++) {
        f->send[i] = mpitest_rank * 100 + i;
        f->recv[i] = -1;
    }
    for (int r = 0; r < n; r++) {
        f->counts[r] = N;
        f->displs[r] = (n - 1 - r) * N;
        f->bytes[r] = f->displs[r] * 4;
        f->types[r] = type;
    }
    switch (form) {
    case 0:
        MPI_Ibarrier(w, request);
        break;
    case 1:
        MPI_Ibcast(mpitest_rank == root ? f->send : f->recv, N, type, root, w, request);
        break;
    case 2:
        MPI_Igather(f->send, N, type, f->recv, N, type, root, w, request);
        break;
    case 3:
        MPI_Igatherv(f->send, N, type, f->recv, f->counts, f->displs, type, root, w, request);
        break;
    case 4:
        MPI_Iscatter(f->send, N, type, f->recv, N, type, root, w, request);
        break;
    case 5:
        MPI_Iscatterv(f->send, f->counts, f->displs, type, f->recv, N, type, root, w, request);
        break;
    case 6:
        MPI_Iallgather(f->send, N, type, f->recv, N, type, w, request);
        break;
    case 7:
        MPI_Iallgatherv(f->send, N, type, f->recv, f->counts, f->displs, type, w, request);
        break;
    case 8:
        MPI_Ialltoall(f->send, N, type, f->recv, N, type, w, request);
        break;
    case 9:
        MPI_Ialltoallv(f->send, f->counts, f->displs, type, f->recv, f->counts, f->displs, type, w, request);
        break;
    case 10:
        MPI_Ialltoallw(f->send, f->counts, f->bytes, f->types, f->recv, f->counts, f->bytes, f->types, w,
                       request);
        break;
    case 11:
        MPI_Ireduce(f->send, f->recv, N, type, op, root, w, request);
        break;
    case 12:
        MPI_Iallreduce(f->send, f->recv, N, type, op, w, request);
        break;
    case 13:
        MPI_Ireduce_scatter(f->send, f->recv, f->counts, type, op, w, request);
        break;
    case 14:
        MPI_Ireduce_scatter_block(f->send, f->recv, N, type, op, w, request);
        break;
    case 15:
        MPI_Iscan(f->send, f->recv, N, type, op, w, request);
        break;
    default:
        MPI_Iexscan(f->send, f->recv, N, type, op, w, request);
        break;
    }
    MPI_Type_free(&type);
    MPI_Op_free(&op);
}

/* The sum of element i over all ranks below `ranks`. */
static int sum_over_ranks(int ranks, int i)
{
    return 100 * ranks * (ranks - 1) / 2 + ranks * i;
}

static void check_result(const struct collective_buffers *f, int form, int root)
{
    const int n = mpitest_size, me = mpitest_rank;
    for (int i = 0; i < N; i++) {
        switch (form) {
        case 0:
            break;
        case 1:
            if (me != root)
                EXPECT_EQ(f->recv[i], root * 100 + i);
            break;
        case 2:
        case 3:
            for (int r = 0; me == root && r < n; r++)
                EXPECT_EQ(f->recv[(form == 2 ? r * N : f->displs[r]) + i], r * 100 + i);
            break;
        case 4:
            EXPECT_EQ(f->recv[i], root * 100 + me * N + i);
            break;
        case 5:
            EXPECT_EQ(f->recv[i], root * 100 + f->displs[me] + i);
            break;
        case 6:
        case 7:
            for (int r = 0; r < n; r++)
                EXPECT_EQ(f->recv[(form == 6 ? r * N : f->displs[r]) + i], r * 100 + i);
            break;
        case 8:
            for (int r = 0; r < n; r++)
                EXPECT_EQ(f->recv[r * N + i], r * 100 + me * N + i);
            break;
        case 9:
        case 10:
            for (int r = 0; r < n; r++)
                EXPECT_EQ(f->recv[f->displs[r] + i], r * 100 + f->displs[me] + i);
            break;
        case 11:
            if (me == root)
                EXPECT_EQ(f->recv[i], sum_over_ranks(n, i));
            break;
        case 12:
            EXPECT_EQ(f->recv[i], sum_over_ranks(n, i));
            break;
        case 13:
        case 14:
            EXPECT_EQ(f->recv[i], sum_over_ranks(n, me * N + i));
            break;
        case 15:
            EXPECT_EQ(f->recv[i], sum_over_ranks(me + 1, i));
            break;
        default:
            if (me > 0)
                EXPECT_EQ(f->recv[i], sum_over_ranks(me, i));
        }
    }
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    static struct collective_buffers flights[FORMS];
    MPI_Request requests[FORMS];
    for (int round = 0; round < ROUNDS; round++) {
        const int root = round % mpitest_size;
        for (int form = 0; form < FORMS; form++)
            start_collective(&flights[form], form, root, &requests[form]);
        if (round % 3 == 0) {
            MPI_Waitall(FORMS, requests, MPI_STATUSES_IGNORE);
        } else if (round % 3 == 1) {
            for (int i = 0; i < FORMS; i++)
                MPI_Wait(&requests[(FORMS - 1 - i + mpitest_rank) % FORMS], MPI_STATUS_IGNORE);
        } else {
            int left = FORMS, which, blocking = 0, one = 1;
            /* A blocking call while nonblocking calls are in flight. */
            MPI_Allreduce(&one, &blocking, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            EXPECT_EQ(blocking, mpitest_size);
            while (left-- > 0)
                MPI_Waitany(FORMS, requests, &which, MPI_STATUS_IGNORE);
        }
        for (int form = 0; form < FORMS; form++)
            check_result(&flights[form], form, root);
    }
    return mpitest_end();
}
