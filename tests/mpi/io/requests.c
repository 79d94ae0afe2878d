/* requests.c: nonblocking file operations together with other requests: many collective operations in
 * flight at a time, completed in any order and together with messages; split collective operations;
 * independent operations.
 * ranks: 1 4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "iotest.h"

#define OPERATIONS 6
#define WORDS      700

static int data_word(int operation, int rank, int i)
{
    return operation * 1000003 + rank * 5003 + i;
}

/* Gives each operation a region of its own, in which ranks are interleaved word by word. */
static void set_view(MPI_File f)
{
    MPI_Datatype word;
    MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * mpitest_size, &word);
    MPI_Type_commit(&word);
    EXPECT_EQ(
        MPI_File_set_view(f, (MPI_Offset)sizeof(int) * mpitest_rank, MPI_INT, word, "native", MPI_INFO_NULL),
        0);
    MPI_Type_free(&word);
}

static void check_many_operations(MPI_File f)
{
    static int out[OPERATIONS][WORDS], in[OPERATIONS][WORDS];
    MPI_Request requests[OPERATIONS + 3];
    MPI_Status statuses[OPERATIONS + 3];
    int message = mpitest_rank, got = -1, sum = 0, one = 1;
    const int right = (mpitest_rank + 1) % mpitest_size,
              left = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    for (int k = 0; k < OPERATIONS; k++) {
        for (int i = 0; i < WORDS; i++)
            out[k][i] = data_word(k, mpitest_rank, i);
        EXPECT_EQ(MPI_File_iwrite_at_all(f, k * WORDS, out[k], WORDS, MPI_INT, &requests[k]), 0);
    }
    MPI_Irecv(&got, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &requests[OPERATIONS]);
    MPI_Isend(&message, 1, MPI_INT, right, 5, MPI_COMM_WORLD, &requests[OPERATIONS + 1]);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[OPERATIONS + 2]);
    EXPECT_EQ(MPI_Waitall(OPERATIONS + 3, requests, statuses), 0);
    for (int k = 0; k < OPERATIONS; k++)
        EXPECT_EQ(get_count(&statuses[k], MPI_INT), WORDS);
    EXPECT_EQ(got, left);
    EXPECT_EQ(sum, mpitest_size);
    MPI_File_sync(f);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < OPERATIONS; k++)
        EXPECT_EQ(MPI_File_iread_at_all(f, k * WORDS, in[k], WORDS, MPI_INT, &requests[k]), 0);
    /* Ranks complete the operations in different orders. */
    for (int k = 0; k < OPERATIONS; k++)
        EXPECT_EQ(MPI_Wait(&requests[(k + mpitest_rank) % OPERATIONS], &statuses[0]), 0);
    EXPECT(memcmp(in, out, sizeof(in)) == 0);
}

/* A view may change while an operation through the old view is in flight; tiles of the new view overlap,
 * so that only one of them may be used. */
static void check_new_view(MPI_File f)
{
    MPI_Datatype two, type;
    MPI_Request requests[3];
    int out[2] = {mpitest_rank, -mpitest_rank}, in[2];
    const int lengths[2] = {1, 1}, displs[2] = {mpitest_rank, mpitest_size + mpitest_rank};
    MPI_Type_indexed(2, lengths, displs, MPI_INT, &two);
    MPI_Type_create_resized(two, 0, sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&two);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(MPI_File_set_view(f, 1000 * i, MPI_INT, type, "native", MPI_INFO_NULL), 0);
        EXPECT_EQ(MPI_File_iwrite_all(f, out, 2, MPI_INT, &requests[i]), 0);
    }
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), 0);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(MPI_File_read_at(f, 250 * i + mpitest_rank, &in[0], 1, MPI_INT, MPI_STATUS_IGNORE), 0);
        EXPECT_EQ(
            MPI_File_read_at(f, 250 * i + mpitest_size + mpitest_rank, &in[1], 1, MPI_INT, MPI_STATUS_IGNORE),
            0);
        EXPECT(in[0] == mpitest_rank && in[1] == -mpitest_rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&type);
}

/* A request that is freed is completed nevertheless. */
static void check_freed(MPI_File f)
{
    static int out[WORDS];
    int in[2] = {0, 0};
    MPI_Request request;
    for (int i = 0; i < WORDS; i++)
        out[i] = data_word(55, mpitest_rank, i);
    EXPECT_EQ(MPI_File_iwrite_at_all(f, 0, out, WORDS, MPI_INT, &request), 0);
    EXPECT_EQ(MPI_Request_free(&request), 0);
    EXPECT(request == MPI_REQUEST_NULL);
    while (in[1] != out[WORDS - 1]) {
        int poll = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &poll, MPI_STATUS_IGNORE);
        EXPECT_EQ(MPI_File_read_at(f, WORDS - 1, &in[1], 1, MPI_INT, MPI_STATUS_IGNORE), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* makes progress until all ranks have completed their operations */
}

/* Frees the request of a write and closes the file: MPI_File_close waits for the write. */
static void close_with_freed_request(MPI_File f)
{
    static int out[WORDS];
    MPI_Request request;
    EXPECT_EQ(MPI_File_iwrite_at_all(f, (MPI_Offset)WORDS * mpitest_rank, out, WORDS, MPI_INT, &request), 0);
    EXPECT_EQ(MPI_Request_free(&request), 0);
}

static void check_pointer(MPI_File f)
{
    int out[3] = {1, 2, 3}, in[3] = {0, 0, 0}, flag = 0;
    MPI_Request requests[3];
    MPI_Status status;
    MPI_Offset at;
    EXPECT_EQ(MPI_File_seek(f, 0, MPI_SEEK_SET), 0);
    EXPECT_EQ(MPI_File_iwrite(f, &out[0], 1, MPI_INT, &requests[0]), 0);
    EXPECT_EQ(MPI_File_iwrite_all(f, &out[1], 1, MPI_INT, &requests[1]), 0);
    EXPECT_EQ(MPI_File_iwrite(f, &out[2], 1, MPI_INT, &requests[2]), 0);
    MPI_File_get_position(f, &at);
    EXPECT_EQ(at, 3);
    EXPECT_EQ(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), 0);
    EXPECT_EQ(MPI_File_iread_at(f, 0, in, 3, MPI_INT, &requests[0]), 0);
    while (!flag)
        EXPECT_EQ(MPI_Test(&requests[0], &flag, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), 3);
    EXPECT_EQ(in[0] * 100 + in[1] * 10 + in[2], 123);
}

static void check_split(MPI_File f)
{
    static int out[WORDS], in[WORDS];
    MPI_Status status;
    for (int i = 0; i < WORDS; i++)
        out[i] = data_word(77, mpitest_rank, i);
    MPI_File_seek(f, 0, MPI_SEEK_SET);
    EXPECT_EQ(MPI_File_write_all_begin(f, out, WORDS, MPI_INT), 0);
    EXPECT(get_error_class(MPI_File_write_all_begin(f, out, WORDS, MPI_INT)) != MPI_SUCCESS);
    MPI_File clone = f;
    EXPECT_CLASS(MPI_File_close(&clone), MPI_ERR_FILE);
    EXPECT_EQ(MPI_File_write_all_end(f, out, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), WORDS);
    EXPECT(get_error_class(MPI_File_write_all_end(f, out, &status)) != MPI_SUCCESS);
    MPI_File_seek(f, 0, MPI_SEEK_SET);
    EXPECT_EQ(MPI_File_read_all_begin(f, in, WORDS, MPI_INT), 0);
    EXPECT_EQ(MPI_File_read_all_end(f, in, &status), 0);
    EXPECT(memcmp(in, out, sizeof(in)) == 0);
}

int main(int argc, char **argv)
{
    static const char *const choices[] = {"enable", "disable"};
    iotest_begin(&argc, &argv);
    for (int i = 0; i < 2; i++) {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "romio_cb_write", choices[i]);
        MPI_Info_set(info, "romio_cb_read", choices[1 - i]);
        MPI_Info_set(info, "cb_buffer_size", "4096");
        MPI_File f = iotest_open(MPI_COMM_WORLD, info);
        MPI_Info_free(&info);
        set_view(f);
        check_many_operations(f);
        check_freed(f);
        check_pointer(f);
        check_split(f);
        check_new_view(f);
        close_with_freed_request(f);
        EXPECT_EQ(MPI_File_close(&f), 0);
    }
    return iotest_end();
}
