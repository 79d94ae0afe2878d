/* sendrecv.c: send and receive in one call, replacing and nonblocking forms, around rings of all sizes,
 * with MPI_PROC_NULL at the ends, truncation, and overlapping exchanges of a rank with itself.
 *
 * ranks: 3 1 2 8
 * also: FISHPLATE_SHM_CMA=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

static const size_t sizes[] = {0, 4, 32, 36, 16384, 16388, 300000};

static int right, left;

static void exchange_with_neighbours(size_t size, int holey, int form)
{
    struct layout l = make_layout(size, holey);
    char *out = malloc(l.span + 1), *in = malloc(l.span + 1);
    MPI_Request r;
    MPI_Status s;
    int count = -1;
    pattern_fill(out, &l, (unsigned)mpitest_rank);
    memset(in, 0xdd, l.span);
    if (form == 0) {
        MPI_Sendrecv(out, l.count, l.type, right, 4, in, l.count, l.type, left, 4, MPI_COMM_WORLD, &s);
    } else {
        MPI_Isendrecv(out, l.count, l.type, right, 4, in, l.count, l.type, left, 4, MPI_COMM_WORLD, &r);
        MPI_Wait(&r, &s);
    }
    EXPECT_EQ(pattern_count_wrong(in, &l, (unsigned)left), 0);
    EXPECT_EQ(s.MPI_SOURCE, left);
    EXPECT_EQ(s.MPI_TAG, 4);
    MPI_Get_count(&s, l.type, &count);
    EXPECT_EQ(count, l.count);
    layout_free(&l);
    free(out);
    free(in);
}

static void test_replace(size_t size, int holey, int form)
{
    struct layout l = make_layout(size, holey);
    char *buf = malloc(l.span + 1);
    MPI_Request r;
    pattern_fill(buf, &l, (unsigned)mpitest_rank);
    for (size_t i = 0; holey && i < l.span; i++)
        if (i % 8 >= 4)
            buf[i] = (char)0xdd;
    for (int hop = 1; hop <= mpitest_size; hop++) { /* one full turn of the ring */
        if (form == 0) {
            MPI_Sendrecv_replace(buf, l.count, l.type, right, 5, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Isendrecv_replace(buf, l.count, l.type, right, 5, left, 5, MPI_COMM_WORLD, &r);
            MPI_Wait(&r, MPI_STATUS_IGNORE);
        }
        unsigned origin = (unsigned)((mpitest_rank - hop + 2 * mpitest_size) % mpitest_size);
        EXPECT_EQ(pattern_count_wrong(buf, &l, origin), 0);
    }
    layout_free(&l);
    free(buf);
}

/* Tests a chain whose ends have MPI_PROC_NULL as partner. */
static void test_chain(void)
{
    int up = mpitest_rank + 1 < mpitest_size ? mpitest_rank + 1 : MPI_PROC_NULL;
    int down = mpitest_rank > 0 ? mpitest_rank - 1 : MPI_PROC_NULL;
    int out = mpitest_rank, in = -5, count = -1;
    MPI_Status s;
    MPI_Request r;
    MPI_Sendrecv(&out, 1, MPI_INT, up, 1, &in, 1, MPI_INT, down, 1, MPI_COMM_WORLD, &s);
    EXPECT_EQ(in, down == MPI_PROC_NULL ? -5 : down);
    EXPECT_EQ(s.MPI_SOURCE, down);
    MPI_Get_count(&s, MPI_INT, &count);
    EXPECT_EQ(count, down != MPI_PROC_NULL);
    MPI_Isendrecv(&out, 1, MPI_INT, down, 1, &in, 1, MPI_INT, up, 1, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, &s);
    EXPECT_EQ(s.MPI_SOURCE, up);
    MPI_Sendrecv_replace(&out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &s);
    EXPECT(out == mpitest_rank && s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG);
}

static void test_truncated(void)
{
    int out[4] = {1, 2, 3, 4}, in[2] = {0, 0};
    MPI_Request r;
    MPI_Status s;
    EXPECT_EQ(
        MPI_Sendrecv(out, 4, MPI_INT, right, 2, in, 2, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
        MPI_ERR_TRUNCATE);
    EXPECT_EQ(MPI_Isendrecv(out, 4, MPI_INT, right, 2, in, 2, MPI_INT, left, 2, MPI_COMM_WORLD, &r),
              MPI_SUCCESS);
    EXPECT_EQ(MPI_Wait(&r, &s), MPI_ERR_TRUNCATE);
    EXPECT(r == MPI_REQUEST_NULL);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    right = (mpitest_rank + 1) % mpitest_size;
    left = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int way = 0; way < 4; way++) {
            exchange_with_neighbours(sizes[i], way & 1, way >> 1);
            test_replace(sizes[i], way & 1, way >> 1);
        }
    test_chain();
    test_truncated();
    return mpitest_end();
}
