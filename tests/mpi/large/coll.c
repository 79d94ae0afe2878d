/* coll.c: every collective operation with blocks of 2^31 - 1, 2^31 or 2^31 + 1 bytes, between two ranks. A
 * run takes each operation in one of its forms (blocking, nonblocking, persistent); the three runs take all
 * of them.
 *
 * ranks: 2
 * env: FISHPLATE_SHM_CMA=0
 * also: BIG=0
 * also: BIG=1
 * alone: yes
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdbool.h>

#include "large/big.h"

static struct big full, half, in; /* source with all bits; source with half of the bits; target */
static MPI_Count n;
static MPI_Comm world = MPI_COMM_WORLD, ring; /* ring: a topology whose neighbour is the other rank */
static int me;

/* Vector calls: rank 0's block has n bytes and is followed by rank 1's block of one byte. A rank sends its
 * own block to both ranks. */
static MPI_Count blocks[2], mine[2], single[1];
static MPI_Aint places[2], same[2], place[1];
static MPI_Datatype types[2];

/* Address of this rank's block in a source with one block of n bytes per rank. */
static const void *own_block(const struct big *b)
{
    return b->at + (me ? n % BIG_PERIOD : 0);
}

static void complete_request(int form, MPI_Request *r)
{
    if (form == 2)
        MPI_Start(r);
    if (form > 0)
        MPI_Wait(r, MPI_STATUS_IGNORE);
    if (form == 2)
        MPI_Request_free(r);
}

/* Defines a function that executes one operation in one of its forms: blocking, nonblocking, persistent. */
#define COLL(Name, name, comm, ...)                                    \
    static void do_##name(int form)                                    \
    {                                                                  \
        MPI_Request r = MPI_REQUEST_NULL;                              \
        if (form == 0)                                                 \
            MPI_##Name##_c(__VA_ARGS__, comm);                         \
        else if (form == 1)                                            \
            MPI_I##name##_c(__VA_ARGS__, comm, &r);                    \
        else                                                           \
            MPI_##Name##_init_c(__VA_ARGS__, comm, MPI_INFO_NULL, &r); \
        complete_request(form, &r);                                    \
    }

COLL(Bcast, bcast, world, me == 0 ? full.at : in.at, n, MPI_BYTE, 0)
COLL(Gather, gather, world, own_block(&full), n, MPI_BYTE, in.at, n, MPI_BYTE, 0)
COLL(Gatherv, gatherv, world, own_block(&full), blocks[me], MPI_BYTE, in.at, blocks, places, MPI_BYTE, 0)
COLL(Scatter, scatter, world, full.at, n, MPI_BYTE, in.at, n, MPI_BYTE, 0)
COLL(Scatterv, scatterv, world, full.at, blocks, places, MPI_BYTE, in.at, blocks[me], MPI_BYTE, 0)
COLL(Allgather, allgather, world, own_block(&full), n, MPI_BYTE, in.at, n, MPI_BYTE)
COLL(Allgatherv, allgatherv, world, own_block(&full), blocks[me], MPI_BYTE, in.at, blocks, places, MPI_BYTE)
COLL(Alltoall, alltoall, world, full.at, n, MPI_BYTE, in.at, n, MPI_BYTE)
COLL(Alltoallv, alltoallv, world, own_block(&full), mine, same, MPI_BYTE, in.at, blocks, places, MPI_BYTE)
COLL(Alltoallw, alltoallw, world, own_block(&full), mine, same, types, in.at, blocks, places, types)
COLL(Neighbor_allgather, neighbor_allgather, ring, full.at, n, MPI_BYTE, in.at, n, MPI_BYTE)
COLL(Neighbor_allgatherv, neighbor_allgatherv, ring, full.at, n, MPI_BYTE, in.at, single, place, MPI_BYTE)
COLL(Neighbor_alltoall, neighbor_alltoall, ring, full.at, n, MPI_BYTE, in.at, n, MPI_BYTE)
COLL(Neighbor_alltoallv, neighbor_alltoallv, ring, full.at, single, place, MPI_BYTE, in.at, single, place,
     MPI_BYTE)
COLL(Neighbor_alltoallw, neighbor_alltoallw, ring, full.at, single, place, types, in.at, single, place, types)
COLL(Reduce, reduce, world, half.at, in.at, n, MPI_UINT8_T, MPI_BOR, 0)
COLL(Allreduce, allreduce, world, half.at, in.at, n, MPI_UINT8_T, MPI_BOR)
COLL(Reduce_scatter_block, reduce_scatter_block, world, half.at, in.at, n, MPI_UINT8_T, MPI_BOR)
COLL(Reduce_scatter, reduce_scatter, world, half.at, in.at, blocks, MPI_UINT8_T, MPI_BOR)
COLL(Scan, scan, world, half.at, in.at, n, MPI_UINT8_T, MPI_BOR)
COLL(Exscan, exscan, world, half.at, in.at, n, MPI_UINT8_T, MPI_BOR)

enum { NONE, ONE, TWO, PLUS, MINE }; /* bytes received: 0, n, 2 n, n + 1, the own block of n + 1 bytes */

static const struct {
    const char *name;
    void (*run)(int form);
    int at[2];             /* amount received by each rank */
    unsigned char mask[2]; /* bits received by each rank */
    bool second;           /* rank 1 receives the bytes from n on */
} operations[] = {
#define MOVES(name, at0, at1, second)                        \
    {                                                        \
#name, do_##name, {at0, at1 }, {0xff, 0xff }, second \
    }
    MOVES(bcast, NONE, ONE, false),
    MOVES(gather, TWO, NONE, false),
    MOVES(gatherv, PLUS, NONE, false),
    MOVES(scatter, ONE, ONE, true),
    MOVES(scatterv, MINE, MINE, true),
    MOVES(allgather, TWO, TWO, false),
    MOVES(allgatherv, PLUS, PLUS, false),
    MOVES(alltoall, TWO, TWO, false),
    MOVES(alltoallv, PLUS, PLUS, false),
    MOVES(alltoallw, PLUS, PLUS, false),
    MOVES(neighbor_allgather, ONE, ONE, false),
    MOVES(neighbor_allgatherv, ONE, ONE, false),
    MOVES(neighbor_alltoall, ONE, ONE, false),
    MOVES(neighbor_alltoallv, ONE, ONE, false),
    MOVES(neighbor_alltoallw, ONE, ONE, false),
    MOVES(reduce, ONE, NONE, false),
    MOVES(allreduce, ONE, ONE, false),
    MOVES(reduce_scatter_block, ONE, ONE, true),
    MOVES(reduce_scatter, MINE, MINE, true),
    {"scan", do_scan, {ONE, ONE}, {0x0f, 0xff}, false},
    {"exscan", do_exscan, {NONE, ONE}, {0xff, 0x0f}, false},
};

static MPI_Count received_length(int what)
{
    return what == ONE ? n : what == TWO ? 2 * n : what == PLUS ? n + 1 : what == MINE ? blocks[me] : 0;
}

/* Checks two blocks of different patterns, only at their start and end. */
static void check_alltoall_blocks(void)
{
    long wrong = 0;
    for (MPI_Count i = 0; i < BIG_PAGE; i++) {
        wrong += in.at[i] != big_value(me * n + i);
        wrong += in.at[2 * n - 1 - i] != big_value(me * n + n - 1 - i);
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(in.at[2 * n], 0xee);
}

static void check_target(size_t i)
{
    const MPI_Count len = received_length(operations[i].at[me]), from = operations[i].second && me ? n : 0;
    const unsigned char mask = operations[i].mask[me];
    if (operations[i].run == do_alltoall) {
        check_alltoall_blocks();
    } else if (len == 1) {
        EXPECT_EQ(in.at[0], big_value(from) & mask);
        EXPECT_EQ(in.at[1], 0xee);
    } else if (len > 1) {
        long wrong = big_count_wrong(&in, from, len, mask);
        if (wrong)
            fprintf(stderr, "rank %d: %s of %lld bytes: %ld of the checked bytes are wrong\n", me,
                    operations[i].name, (long long)n, wrong);
        EXPECT_EQ(wrong, 0);
    }
}

static void prepare_buffers(void)
{
    const int other[1] = {1 - me};
    blocks[0] = single[0] = n;
    blocks[1] = 1;
    places[1] = n;
    mine[0] = mine[1] = blocks[me];
    types[0] = types[1] = MPI_BYTE;
    full = big_source(2 * n, 0xff);
    half = big_source(2 * n, me ? 0xf0 : 0x0f);
    in = big_target(2 * n);
    big_make_private(in.at + big_edge_offset(n - 1), 4 * BIG_PAGE); /* most transfers end here */
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, other, MPI_UNWEIGHTED, 1, other, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
}

int main(int argc, char **argv)
{
    int which;
    big_skip_under_sanitizer();
    mpitest_begin(&argc, &argv);
    me = mpitest_rank;
    n = big_count(&which);
    prepare_buffers();
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        MPI_Count len = received_length(operations[i].at[me]);
        big_clear(&in, len > 1 ? len : n);
        operations[i].run((int)(i + (size_t)which) % 3);
        check_target(i);
    }
    MPI_Comm_free(&ring);
    return mpitest_end();
}
