/* ahead.c: bursts of collectives in which some ranks only send and run ahead of the others, in a random
 * order common to all ranks, with lengths around every limit: slots are reused while other ranks still
 * read them, and ranks report their reads late. All results are checked.
 *
 * ranks: 3 2 8
 * env: FISHPLATE_SPIN_US=20
 * also: FISHPLATE_COLL=copy=read
 * also: FISHPLATE_COLL=copy=split
 * also: FISHPLATE_COLL=copy=slots FISHPLATE_LAB=YIELDS=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "mpitest.h"

enum { BCAST, GATHER, SCATTER, REDUCE, BARRIER, ALLGATHER, ALLTOALL, REDUCE_SCATTER, ALLREDUCE, KINDS };

static const int lengths[] = {1, 6, 7, 40, 256, 257, 511, 1024, 1500, 5000, 20000, 65536};
#define LENGTH_MAX 65536

static int *in, *out;

static unsigned common_seed = 12345; /* the same value at all ranks */
static unsigned random_below(unsigned n)
{
    common_seed = common_seed * 1664525u + 1013904223u;
    return (common_seed >> 8) % n;
}

/* Element i of the data that rank `from` has for rank `to` in call number `call`. */
static int element_value(int from, int to, int i, int call)
{
    return from * 1000003 + to * 7919 + i * 31 + call * 17;
}

static void fill_input(int to, int n, int call)
{
    for (int i = 0; i < n; i++)
        in[to * n + i] = element_value(mpitest_rank, to, i, call);
}

static void expect_block(int block, int from, int to, int n, int call)
{
    for (int i = 0; i < n; i++)
        EXPECT_EQ(out[block * n + i], element_value(from, to, i, call));
}

static void expect_sum(int to, int n, int call)
{
    for (int i = 0; i < n; i++) {
        int sum = 0;
        for (int r = 0; r < mpitest_size; r++)
            sum += element_value(r, to, i, call);
        EXPECT_EQ(out[i], sum);
    }
}

static void run_data_movement_call(int kind, int root, int n, int call)
{
    const int me = mpitest_rank, size = mpitest_size;
    const MPI_Comm w = MPI_COMM_WORLD;
    switch (kind) {
    case BCAST:
        fill_input(0, n, call);
        MPI_Bcast(me == root ? in : out, n, MPI_INT, root, w);
        if (me != root)
            expect_block(0, root, 0, n, call);
        break;
    case GATHER:
        fill_input(0, n, call);
        MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, root, w);
        for (int r = 0; me == root && r < size; r++)
            expect_block(r, r, 0, n, call);
        break;
    case SCATTER:
        for (int r = 0; me == root && r < size; r++)
            fill_input(r, n, call);
        MPI_Scatter(in, n, MPI_INT, out, n, MPI_INT, root, w);
        expect_block(0, root, me, n, call);
        break;
    case ALLGATHER:
        fill_input(0, n, call);
        MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, w);
        for (int r = 0; r < size; r++)
            expect_block(r, r, 0, n, call);
        break;
    case ALLTOALL:
        for (int r = 0; r < size; r++)
            fill_input(r, n, call);
        MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, w);
        for (int r = 0; r < size; r++)
            expect_block(r, r, me, n, call);
        break;
    default:
        MPI_Barrier(w);
    }
}

static void run_reduction_call(int kind, int root, int n, int call)
{
    const MPI_Comm w = MPI_COMM_WORLD;
    for (int r = 0; r < (kind == REDUCE_SCATTER ? mpitest_size : 1); r++)
        fill_input(r, n, call);
    memset(out, 0, (size_t)n * sizeof(*out));
    if (kind == REDUCE)
        MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, root, w);
    else if (kind == ALLREDUCE)
        MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, w);
    else
        MPI_Reduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, w);
    if (kind != REDUCE || mpitest_rank == root)
        expect_sum(kind == REDUCE_SCATTER ? mpitest_rank : 0, n, call);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    in = calloc((size_t)mpitest_size * LENGTH_MAX, sizeof(*in));
    out = calloc((size_t)mpitest_size * LENGTH_MAX, sizeof(*out));
    for (int burst = 0, call = 0; burst < 120; burst++) {
        const int kind = (int)random_below(KINDS), root = (int)random_below((unsigned)mpitest_size);
        const int n = lengths[random_below(sizeof(lengths) / sizeof(lengths[0]))];
        const int calls = n > 2000 ? 3 : (int)random_below(90) + 1;
        if (mpitest_rank == (int)random_below((unsigned)mpitest_size))
            usleep(500); /* one rank is late, so that the others can run ahead */
        for (int i = 0; i < calls; i++, call++) {
            if (kind == REDUCE || kind == ALLREDUCE || kind == REDUCE_SCATTER)
                run_reduction_call(kind, root, n, call);
            else
                run_data_movement_call(kind, root, n, call);
        }
    }
    free(in);
    free(out);
    return mpitest_end();
}
