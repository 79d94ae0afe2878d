/* ahead.c: bursts of collectives in which some ranks only send and run ahead of the others, in an order that is
 * random but the same everywhere, with lengths around every limit: slots are used again while others still
 * read them, and ranks say late what they have read. Results are checked as if there were no hurry.
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
#define LONGEST 65536

static int *in, *out;

static unsigned common = 12345; /* the same at all ranks */
static unsigned dice(unsigned n)
{
    common = common * 1664525u + 1013904223u;
    return (common >> 8) % n;
}

/* What rank `from` has for rank `to` at place i of call number `call`. */
static int value(int from, int to, int i, int call)
{
    return from * 1000003 + to * 7919 + i * 31 + call * 17;
}

static void fill(int to, int n, int call)
{
    for (int i = 0; i < n; i++)
        in[to * n + i] = value(mpitest_rank, to, i, call);
}

static void expect(int block, int from, int to, int n, int call)
{
    for (int i = 0; i < n; i++)
        EXPECT_EQ(out[block * n + i], value(from, to, i, call));
}

static void expect_sum(int to, int n, int call)
{
    for (int i = 0; i < n; i++) {
        int sum = 0;
        for (int r = 0; r < mpitest_size; r++)
            sum += value(r, to, i, call);
        EXPECT_EQ(out[i], sum);
    }
}

static void move(int kind, int root, int n, int call)
{
    const int me = mpitest_rank, size = mpitest_size;
    const MPI_Comm w = MPI_COMM_WORLD;
    switch (kind) {
    case BCAST:
        fill(0, n, call);
        MPI_Bcast(me == root ? in : out, n, MPI_INT, root, w);
        if (me != root)
            expect(0, root, 0, n, call);
        break;
    case GATHER:
        fill(0, n, call);
        MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, root, w);
        for (int r = 0; me == root && r < size; r++)
            expect(r, r, 0, n, call);
        break;
    case SCATTER:
        for (int r = 0; me == root && r < size; r++)
            fill(r, n, call);
        MPI_Scatter(in, n, MPI_INT, out, n, MPI_INT, root, w);
        expect(0, root, me, n, call);
        break;
    case ALLGATHER:
        fill(0, n, call);
        MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, w);
        for (int r = 0; r < size; r++)
            expect(r, r, 0, n, call);
        break;
    case ALLTOALL:
        for (int r = 0; r < size; r++)
            fill(r, n, call);
        MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, w);
        for (int r = 0; r < size; r++)
            expect(r, r, me, n, call);
        break;
    default:
        MPI_Barrier(w);
    }
}

static void reduce(int kind, int root, int n, int call)
{
    const MPI_Comm w = MPI_COMM_WORLD;
    for (int r = 0; r < (kind == REDUCE_SCATTER ? mpitest_size : 1); r++)
        fill(r, n, call);
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
    in = calloc((size_t)mpitest_size * LONGEST, sizeof(*in));
    out = calloc((size_t)mpitest_size * LONGEST, sizeof(*out));
    for (int burst = 0, call = 0; burst < 120; burst++) {
        const int kind = (int)dice(KINDS), root = (int)dice((unsigned)mpitest_size);
        const int n = lengths[dice(sizeof(lengths) / sizeof(lengths[0]))];
        const int calls = n > 2000 ? 3 : (int)dice(90) + 1;
        if (mpitest_rank == (int)dice((unsigned)mpitest_size))
            usleep(500); /* one rank is late: the others have time to run ahead */
        for (int i = 0; i < calls; i++, call++) {
            if (kind == REDUCE || kind == ALLREDUCE || kind == REDUCE_SCATTER)
                reduce(kind, root, n, call);
            else
                move(kind, root, n, call);
        }
    }
    free(in);
    free(out);
    return mpitest_end();
}
