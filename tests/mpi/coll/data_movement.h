/* data_movement.h: tests of collectives that move data, for all combinations of layouts, roots and
 * lengths, in place and not; each rank computes the expected result itself.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_MPI_COLL_DATA_MOVEMENT_H
#define FP_TESTS_MPI_COLL_DATA_MOVEMENT_H

#include "layout.h"

struct data_movement_test {
    MPI_Comm comm;
    int rank, size;
    const struct layout *s, *r;
    long ints; /* integers of a block: a multiple of every layout's number of integers */
};

static long count_elements(const struct layout *l, long ints)
{
    return ints / l->n;
}

#define EXPECT_SPACE(a, b, what, m, root)                                                                \
    do {                                                                                                 \
        if (!space_is_equal(a, b) && mpitest_failures++ < 20)                                            \
            fprintf(stderr, "rank %d of %d: %s of %ld ints, %s to %s, root %d: wrong data\n", (m)->rank, \
                    (m)->size, what, (m)->ints, (m)->s->name, (m)->r->name, root);                       \
    } while (0)

static void test_bcast(const struct data_movement_test *m, int root)
{
    const struct layout *l = m->rank == root ? m->s : m->r;
    long n = count_elements(l, m->ints);
    struct space got = space_alloc(l, n), want = space_alloc(l, n);
    if (m->rank == root)
        space_fill(&got, 0, m->ints, root, 0);
    space_fill(&want, 0, m->ints, root, 0);
    MPI_Bcast(got.base, (int)n, l->type, root, m->comm);
    EXPECT_SPACE(&got, &want, "bcast", m, root);
    space_free(&got);
    space_free(&want);
}

static void test_gather(const struct data_movement_test *m, int root, int in_place)
{
    long ns = count_elements(m->s, m->ints), nr = count_elements(m->r, m->ints);
    struct space send = space_alloc(m->s, ns), got = space_alloc(m->r, nr * m->size),
                 want = space_alloc(m->r, nr * m->size);
    space_fill(&send, 0, m->ints, m->rank, root);
    if (m->rank == root) {
        for (int i = 0; i < m->size; i++)
            space_fill(&want, i * nr, m->ints, i, root);
        if (in_place)
            space_fill(&got, root * nr, m->ints, root, root);
    }
    MPI_Gather(in_place && m->rank == root ? MPI_IN_PLACE : send.base, (int)ns, m->s->type, got.base, (int)nr,
               m->r->type, root, m->comm);
    EXPECT_SPACE(&got, &want, "gather", m, root);
    space_free(&send);
    space_free(&got);
    space_free(&want);
}

static void test_scatter(const struct data_movement_test *m, int root, int in_place)
{
    long ns = count_elements(m->s, m->ints), nr = count_elements(m->r, m->ints);
    struct space send = space_alloc(m->s, ns * m->size), got = space_alloc(m->r, nr),
                 want = space_alloc(m->r, nr);
    for (int i = 0; i < m->size; i++)
        space_fill(&send, i * ns, m->ints, root, i);
    int mine = in_place && m->rank == root;
    if (!mine)
        space_fill(&want, 0, m->ints, root, m->rank);
    MPI_Scatter(send.base, (int)ns, m->s->type, mine ? MPI_IN_PLACE : got.base, (int)nr, m->r->type, root,
                m->comm);
    EXPECT_SPACE(&got, &want, "scatter", m, root);
    space_free(&send);
    space_free(&got);
    space_free(&want);
}

static void test_allgather(const struct data_movement_test *m, int in_place)
{
    long ns = count_elements(m->s, m->ints), nr = count_elements(m->r, m->ints);
    struct space send = space_alloc(m->s, ns), got = space_alloc(m->r, nr * m->size),
                 want = space_alloc(m->r, nr * m->size);
    space_fill(&send, 0, m->ints, m->rank, 0);
    if (in_place)
        space_fill(&got, m->rank * nr, m->ints, m->rank, 0);
    for (int i = 0; i < m->size; i++)
        space_fill(&want, i * nr, m->ints, i, 0);
    MPI_Allgather(in_place ? MPI_IN_PLACE : send.base, (int)ns, m->s->type, got.base, (int)nr, m->r->type,
                  m->comm);
    EXPECT_SPACE(&got, &want, "allgather", m, -1);
    space_free(&send);
    space_free(&got);
    space_free(&want);
}

static void test_alltoall(const struct data_movement_test *m, int in_place)
{
    long ns = count_elements(m->s, m->ints), nr = count_elements(m->r, m->ints);
    struct space send = space_alloc(m->s, ns * m->size), got = space_alloc(m->r, nr * m->size),
                 want = space_alloc(m->r, nr * m->size);
    for (int i = 0; i < m->size; i++) {
        space_fill(&send, i * ns, m->ints, m->rank, i);
        space_fill(&want, i * nr, m->ints, i, m->rank);
        if (in_place)
            space_fill(&got, i * nr, m->ints, m->rank, i);
    }
    MPI_Alltoall(in_place ? MPI_IN_PLACE : send.base, (int)ns, m->s->type, got.base, (int)nr, m->r->type,
                 m->comm);
    EXPECT_SPACE(&got, &want, "alltoall", m, -1);
    space_free(&send);
    space_free(&got);
    space_free(&want);
}

/* The length in ints of the block from rank a to rank b: lengths differ, and some are 0. Symmetric in the
 * ranks, as in-place calls require. */
static long ragged_length(const struct data_movement_test *m, int a, int b)
{
    return (a + b) % 3 == 0 ? 0 : m->ints * (1 + (a + b) % 2);
}

static long ragged_displacement(const struct data_movement_test *m, const struct layout *l, int i)
{
    return (long)(m->size - 1 - i) * (count_elements(l, 2 * m->ints) + 1);
}

static void test_gatherv(const struct data_movement_test *m, int root, int in_place)
{
    long mine = ragged_length(m, m->rank, 0);
    int counts[64], displs[64];
    struct space send = space_alloc(m->s, count_elements(m->s, mine)),
                 got = space_alloc(m->r, ragged_displacement(m, m->r, -1)),
                 want = space_alloc(m->r, ragged_displacement(m, m->r, -1));
    space_fill(&send, 0, mine, m->rank, root);
    for (int i = 0; i < m->size; i++) {
        counts[i] = (int)count_elements(m->r, ragged_length(m, i, 0));
        displs[i] = (int)ragged_displacement(m, m->r, i);
        if (m->rank == root)
            space_fill(&want, displs[i], ragged_length(m, i, 0), i, root);
    }
    int here = in_place && m->rank == root;
    if (here)
        space_fill(&got, displs[root], mine, root, root);
    MPI_Gatherv(here ? MPI_IN_PLACE : send.base, (int)count_elements(m->s, mine), m->s->type, got.base,
                m->rank == root ? counts : NULL, m->rank == root ? displs : NULL, m->r->type, root, m->comm);
    EXPECT_SPACE(&got, &want, "gatherv", m, root);
    space_free(&send);
    space_free(&got);
    space_free(&want);
}

static void test_scatterv(const struct data_movement_test *m, int root, int in_place)
{
    long mine = ragged_length(m, m->rank, 0);
    int counts[64], displs[64];
    struct space send = space_alloc(m->s, ragged_displacement(m, m->s, -1)),
                 got = space_alloc(m->r, count_elements(m->r, mine)),
                 want = space_alloc(m->r, count_elements(m->r, mine));
    for (int i = 0; i < m->size; i++) {
        counts[i] = (int)count_elements(m->s, ragged_length(m, i, 0));
        displs[i] = (int)ragged_displacement(m, m->s, i);
        space_fill(&send, displs[i], ragged_length(m, i, 0), root, i);
    }
    int here = in_place && m->rank == root;
    if (!here)
        space_fill(&want, 0, mine, root, m->rank);
    MPI_Scatterv(send.base, m->rank == root ? counts : NULL, m->rank == root ? displs : NULL, m->s->type,
                 here ? MPI_IN_PLACE : got.base, (int)count_elements(m->r, mine), m->r->type, root, m->comm);
    EXPECT_SPACE(&got, &want, "scatterv", m, root);
    space_free(&send);
    space_free(&got);
    space_free(&want);
}

static void test_allgatherv(const struct data_movement_test *m, int in_place)
{
    long mine = ragged_length(m, m->rank, 0);
    int counts[64], displs[64];
    struct space send = space_alloc(m->s, count_elements(m->s, mine)),
                 got = space_alloc(m->r, ragged_displacement(m, m->r, -1)),
                 want = space_alloc(m->r, ragged_displacement(m, m->r, -1));
    space_fill(&send, 0, mine, m->rank, 0);
    for (int i = 0; i < m->size; i++) {
        counts[i] = (int)count_elements(m->r, ragged_length(m, i, 0));
        displs[i] = (int)ragged_displacement(m, m->r, i);
        space_fill(&want, displs[i], ragged_length(m, i, 0), i, 0);
    }
    if (in_place)
        space_fill(&got, displs[m->rank], mine, m->rank, 0);
    MPI_Allgatherv(in_place ? MPI_IN_PLACE : send.base, (int)count_elements(m->s, mine), m->s->type, got.base,
                   counts, displs, m->r->type, m->comm);
    EXPECT_SPACE(&got, &want, "allgatherv", m, -1);
    space_free(&send);
    space_free(&got);
    space_free(&want);
}

static void test_alltoallv(const struct data_movement_test *m, int in_place, int wide)
{
    int scounts[64], rcounts[64], sdispls[64], rdispls[64];
    MPI_Datatype stypes[64], rtypes[64];
    struct space send = space_alloc(m->s, ragged_displacement(m, m->s, -1)),
                 got = space_alloc(m->r, ragged_displacement(m, m->r, -1)),
                 want = space_alloc(m->r, ragged_displacement(m, m->r, -1));
    for (int i = 0; i < m->size; i++) {
        long n = ragged_length(m, m->rank, i);
        scounts[i] = (int)count_elements(m->s, n);
        rcounts[i] = (int)count_elements(m->r, n);
        sdispls[i] = (int)ragged_displacement(m, m->s, i);
        rdispls[i] = (int)ragged_displacement(m, m->r, i);
        space_fill(&send, sdispls[i], n, m->rank, i);
        space_fill(&want, rdispls[i], n, i, m->rank);
        if (in_place)
            space_fill(&got, rdispls[i], n, m->rank, i);
        if (wide) {
            sdispls[i] *= (int)m->s->extent;
            rdispls[i] *= (int)m->r->extent;
            stypes[i] = m->s->type;
            rtypes[i] = m->r->type;
        }
    }
    if (wide)
        MPI_Alltoallw(in_place ? MPI_IN_PLACE : send.base, scounts, sdispls, stypes, got.base, rcounts,
                      rdispls, rtypes, m->comm);
    else
        MPI_Alltoallv(in_place ? MPI_IN_PLACE : send.base, scounts, sdispls, m->s->type, got.base, rcounts,
                      rdispls, m->r->type, m->comm);
    EXPECT_SPACE(&got, &want, wide ? "alltoallw" : "alltoallv", m, in_place);
    space_free(&send);
    space_free(&got);
    space_free(&want);
}

static void test_all_data_movement(MPI_Comm comm, const struct layout *s, const struct layout *r, long ints)
{
    struct data_movement_test m = {.comm = comm, .s = s, .r = r, .ints = ints};
    MPI_Comm_rank(comm, &m.rank);
    MPI_Comm_size(comm, &m.size);
    for (int root = 0; root < m.size; root++) {
        test_bcast(&m, root);
        if (ints * m.size > 100000)
            continue;
        for (int in_place = 0; in_place < 2; in_place++) {
            test_gather(&m, root, in_place);
            test_scatter(&m, root, in_place);
            test_gatherv(&m, root, in_place);
            test_scatterv(&m, root, in_place);
        }
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        test_allgather(&m, in_place);
        test_alltoall(&m, in_place);
        test_allgatherv(&m, in_place);
        test_alltoallv(&m, in_place, 0);
        test_alltoallv(&m, in_place, 1);
    }
}

#endif
