/* pointers.c: shared file pointers: every record is written once and read once, ordered access is in rank
 * order; and the calls that a sequential file permits.
 * ranks: 1 4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "iotest.h"

#define RECORDS 40
#define WORDS   5

/* Ranks write records of WORDS integers at the shared pointer; afterwards each record exists exactly once. */
static void check_records(MPI_File f)
{
    int record[WORDS], *seen = calloc((size_t)mpitest_size * RECORDS, sizeof(int));
    MPI_Offset size, at;
    MPI_Status status;
    for (int i = 0; i < RECORDS; i++) {
        for (int k = 0; k < WORDS; k++)
            record[k] = mpitest_rank * RECORDS + i;
        if (i % 3) {
            EXPECT_EQ(MPI_File_write_shared(f, record, WORDS, MPI_INT, &status), 0);
            EXPECT_EQ(get_count(&status, MPI_INT), WORDS);
        } else {
            MPI_Request request;
            EXPECT_EQ(MPI_File_iwrite_shared(f, record, WORDS, MPI_INT, &request), 0);
            EXPECT_EQ(MPI_Wait(&request, &status), 0);
        }
    }
    MPI_File_sync(f);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(f, &size);
    EXPECT_EQ(size, (MPI_Offset)sizeof(int) * WORDS * RECORDS * mpitest_size);
    MPI_File_get_position_shared(f, &at);
    EXPECT_EQ(at, WORDS * RECORDS * mpitest_size);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_seek_shared(f, 0, MPI_SEEK_SET), 0);
    for (;;) {
        EXPECT_EQ(MPI_File_read_shared(f, record, WORDS, MPI_INT, &status), 0);
        if (get_count(&status, MPI_INT) == 0)
            break;
        for (int k = 1; k < WORDS; k++)
            EXPECT_EQ(record[k], record[0]);
        seen[record[0]]++;
    }
    MPI_Allreduce(MPI_IN_PLACE, seen, mpitest_size * RECORDS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < mpitest_size * RECORDS; i++)
        EXPECT_EQ(seen[i], 1);
    free(seen);
}

/* Tests ordered writes, blocking and split: rank r writes r + 1 words. */
static void check_ordered(MPI_File f)
{
    int mine[16], got[16];
    MPI_Status status;
    const int total = mpitest_size * (mpitest_size + 1) / 2;
    MPI_File_seek_shared(f, 3, MPI_SEEK_SET);
    for (int i = 0; i <= mpitest_rank; i++)
        mine[i] = 100 * mpitest_rank + i;
    EXPECT_EQ(MPI_File_write_ordered(f, mine, mpitest_rank + 1, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), mpitest_rank + 1);
    EXPECT_EQ(MPI_File_write_ordered_begin(f, mine, mpitest_rank + 1, MPI_INT), 0);
    EXPECT_EQ(MPI_File_write_ordered_end(f, mine, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), mpitest_rank + 1);
    MPI_File_sync(f);
    MPI_Barrier(MPI_COMM_WORLD);
    int before = 3;
    for (int r = 0; r < mpitest_size; before += ++r) {
        for (int turn = 0; turn < 2; turn++) {
            EXPECT_EQ(MPI_File_read_at(f, before + turn * total, got, r + 1, MPI_INT, &status), 0);
            EXPECT_EQ(got[r], 100 * r + r);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(f, 3, MPI_SEEK_SET);
    memset(got, 0, sizeof(got));
    EXPECT_EQ(MPI_File_read_ordered(f, got, mpitest_rank + 1, MPI_INT, &status), 0);
    EXPECT(memcmp(got, mine, sizeof(int) * (size_t)(mpitest_rank + 1)) == 0);
    memset(got, 0, sizeof(got));
    EXPECT_EQ(MPI_File_read_ordered_begin(f, got, mpitest_rank + 1, MPI_INT), 0);
    EXPECT(get_error_class(MPI_File_read_all_end(f, got, &status)) != MPI_SUCCESS);
    EXPECT_EQ(MPI_File_read_ordered_end(f, got, &status), 0);
    EXPECT(memcmp(got, mine, sizeof(int) * (size_t)(mpitest_rank + 1)) == 0);
}

/* Every rank has its own view. Shared pointers require the same view at all ranks (MPI-5.0, 14.4.4), but
 * the shared position has an offset in each view: data that a rank writes at position p is stored at
 * position p of its own view. */
static void check_views(const char *name)
{
    MPI_Datatype piece, type;
    int *all = calloc((size_t)mpitest_size * RECORDS * (size_t)mpitest_size, sizeof(int)),
        word = mpitest_rank + 1;
    int taken = 0;
    MPI_File f;
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f), 0);
    MPI_File_set_size(f, 0);
    MPI_Type_contiguous(1, MPI_INT, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)sizeof(int) * mpitest_size, &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(
        MPI_File_set_view(f, (MPI_Offset)sizeof(int) * mpitest_rank, MPI_INT, type, "native", MPI_INFO_NULL),
        0);
    for (int i = 0; i < RECORDS; i++)
        EXPECT_EQ(MPI_File_write_shared(f, &word, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
    MPI_File_sync(f);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_read_at(f, 0, all, mpitest_size * RECORDS * mpitest_size, MPI_INT, MPI_STATUS_IGNORE),
              0);
    for (int p = 0; p < mpitest_size * RECORDS; p++) { /* exactly one rank wrote at position p */
        int who = 0, n = 0;
        for (int r = 0; r < mpitest_size; r++)
            if (all[p * mpitest_size + r] != 0) {
                who = r;
                n++;
            }
        EXPECT_EQ(n, 1);
        EXPECT_EQ(all[p * mpitest_size + who], who + 1);
        taken += who == mpitest_rank;
    }
    EXPECT_EQ(taken, RECORDS);
    MPI_Type_free(&piece);
    MPI_Type_free(&type);
    MPI_File_close(&f);
    free(all);
}

static void check_sequential(const char *name)
{
    MPI_File f;
    MPI_Offset at;
    int word = mpitest_rank;
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &f),
              0);
    EXPECT_CLASS(MPI_File_write(f, &word, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_CLASS(MPI_File_get_position(f, &at), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_EQ(MPI_File_write_ordered(f, &word, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT_CLASS(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    EXPECT_EQ(MPI_File_set_view(f, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_write_ordered(f, &word, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
    MPI_File_close(&f);
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f), 0);
    MPI_File_read_at(f, (MPI_Offset)sizeof(int) * (mpitest_size + mpitest_rank), &word, 1, MPI_INT,
                     MPI_STATUS_IGNORE);
    EXPECT_EQ(word, mpitest_rank);
    MPI_File_close(&f);
}

int main(int argc, char **argv)
{
    const char *name = iotest_begin(&argc, &argv);
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
    check_records(f);
    check_ordered(f);
    MPI_File_close(&f);
    check_sequential(name);
    check_views(name);
    return iotest_end();
}
