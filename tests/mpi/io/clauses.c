/* clauses.c: rarely used rules of the standard: calls that a sequential file refuses, one split operation
 * at a time, the end of the file in views with holes, views without data, ranks without data in collective
 * calls, hints set only by rank 0, and objects that are freed while the file still uses them.
 * ranks: 1 3
 * nodes: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "iotest.h"

/* A type of every second word, four of them in a tile of 32 bytes. */
static MPI_Datatype make_every_second_type(void)
{
    MPI_Datatype vector, type;
    MPI_Type_vector(4, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 32, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&vector);
    return type;
}

/* Checks MPI_MODE_SEQUENTIAL: no position can be queried or changed, except that offsets of the view can
 * be looked up (MPI-5.0, 14.4.3). */
static void check_sequential(const char *name)
{
    MPI_File f;
    MPI_Offset at = -1;
    int word = mpitest_rank;
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, name,
                            MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND,
                            MPI_INFO_NULL, &f),
              0);
    EXPECT_EQ(MPI_File_write_ordered(f, &word, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT_CLASS(MPI_File_set_size(f, 100), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_CLASS(MPI_File_preallocate(f, 100), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_CLASS(MPI_File_seek_shared(f, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_CLASS(MPI_File_get_position_shared(f, &at), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_CLASS(MPI_File_seek(f, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_CLASS(MPI_File_write_at_all(f, 0, &word, 1, MPI_INT, MPI_STATUS_IGNORE),
                 MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_EQ(MPI_File_get_byte_offset(f, 3, &at), 0);
    EXPECT_EQ(at, 3);
    EXPECT_EQ(MPI_File_set_view(f, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_get_byte_offset(f, 1, &at), 0);
    EXPECT_EQ(at, 4 * mpitest_size + 4);
    EXPECT_EQ(MPI_File_get_size(f, &at), 0);
    EXPECT_EQ(at, 4 * mpitest_size);
    MPI_File_close(&f);
}

static void check_split(MPI_File f)
{
    int out = mpitest_rank, in = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    const MPI_Offset at = 4 * mpitest_rank;
    EXPECT_EQ(MPI_File_write_at_all_begin(f, at, &out, 1, MPI_INT), 0);
    EXPECT_CLASS(MPI_File_read_at_all_begin(f, at, &in, 1, MPI_INT), MPI_ERR_OTHER);
    EXPECT_CLASS(MPI_File_read_at_all(f, at, &in, 1, MPI_INT, &status), MPI_ERR_OTHER);
    EXPECT_CLASS(MPI_File_write_ordered(f, &out, 1, MPI_INT, &status), MPI_ERR_OTHER);
    EXPECT_CLASS(MPI_File_iwrite_at_all(f, at, &out, 1, MPI_INT, &request), MPI_ERR_OTHER);
    EXPECT_CLASS(MPI_File_read_all_end(f, &in, &status), MPI_ERR_OTHER);
    /* Independent accesses of the other ranks are permitted. */
    EXPECT_EQ(MPI_File_write_at(f, 1000 + at, &out, 1, MPI_INT, &status), 0);
    EXPECT_EQ(MPI_File_write_at_all_end(f, &out, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), 1);
    EXPECT_CLASS(MPI_File_write_at_all_end(f, &out, &status), MPI_ERR_OTHER);
    EXPECT_EQ(MPI_File_read_at_all(f, at, &in, 1, MPI_INT, &status), 0);
    EXPECT_EQ(in, mpitest_rank);
}

/* MPI_SEEK_END is the first etype that begins after the last byte of the file. */
static void check_seek_end(MPI_File f)
{
    static const struct {
        int size, end;
    } cases[] = {{0, 0},  {1, 1},  {4, 1},  {5, 1},  {8, 1},  {9, 2},  {24, 3},
                 {25, 4}, {31, 4}, {32, 4}, {33, 5}, {64, 8}, {68, 9}, {72, 9}};
    MPI_Datatype type = make_every_second_type();
    MPI_Offset at = -1;
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, type, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_seek(f, 77, MPI_SEEK_SET), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        EXPECT_EQ(MPI_File_set_size(f, cases[i].size), 0);
        MPI_File_get_position(f, &at);
        EXPECT_EQ(at, i == 0 ? 77 : cases[i - 1].end); /* a new file size does not change the pointer */
        EXPECT_EQ(MPI_File_seek(f, 0, MPI_SEEK_END), 0);
        MPI_File_get_position(f, &at);
        EXPECT_EQ(at, cases[i].end);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < 9; i++) {
        EXPECT_EQ(MPI_File_get_byte_offset(f, i, &at), 0);
        EXPECT_EQ(at, 8 * i);
    }
    EXPECT_EQ(MPI_File_set_view(f, 100, MPI_INT, type, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_seek(f, 0, MPI_SEEK_END), 0);
    MPI_File_get_position(f, &at);
    EXPECT_EQ(at, 0); /* the file ends before the view begins */
    MPI_Type_free(&type);
}

/* A view without data: no access transfers data, and no offset corresponds to a byte of the file. */
static void check_view_without_data(MPI_File f)
{
    MPI_Datatype none;
    MPI_Offset at = -1;
    int word = 0;
    MPI_Status status;
    MPI_Type_contiguous(0, MPI_INT, &none);
    MPI_Type_commit(&none);
    EXPECT_EQ(MPI_File_set_view(f, 8, MPI_INT, none, "native", MPI_INFO_NULL), 0);
    MPI_Type_free(&none);
    EXPECT_CLASS(MPI_File_get_byte_offset(f, 0, &at), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_File_seek(f, 0, MPI_SEEK_END), 0);
    EXPECT_EQ(MPI_File_read_at_all(f, 0, &word, 0, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), 0);
    EXPECT_CLASS(MPI_File_read_at(f, 0, &word, 1, MPI_INT, &status), MPI_ERR_TYPE);
}

enum { PIECES = 300 };

/* Reads beyond the end of the file to memory with gaps: memory for bytes after the end does not change. */
static void check_memory_after_end(MPI_File f, const int *wanted, int n)
{
    MPI_Datatype second = make_every_second_type();
    MPI_Status status;
    int in[4 * PIECES], wrong = 0;
    for (int i = 0; i < 4 * PIECES; i++)
        in[i] = -1;
    EXPECT_EQ(MPI_File_read_at_all(f, 0, in, n / 2, second, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), n);
    for (int i = 0; i < 4 * PIECES; i++)
        wrong += in[i] != (i % 2 == 0 && i / 2 < n ? wanted[i / 2] : -1);
    EXPECT_EQ(wrong, 0);
    MPI_Type_free(&second);
}

/* Odd ranks access no data; the last rank's read extends beyond the end. `choice`: collective buffering. */
static void check_ranks_without_data(const char *choice)
{
    MPI_Info info;
    MPI_Datatype piece, type;
    MPI_Status status;
    int out[PIECES], in[2 * PIECES], n = mpitest_rank % 2 ? 0 : PIECES;
    const int writers = (mpitest_size + 1) / 2;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", choice);
    MPI_Info_set(info, "romio_cb_read", choice);
    MPI_File f = iotest_open(MPI_COMM_WORLD, info);
    MPI_Info_free(&info);
    MPI_File_set_size(f, 0);
    MPI_Type_contiguous(1, MPI_INT, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)sizeof(int) * writers, &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(
        MPI_File_set_view(f, 4 * (MPI_Offset)(mpitest_rank / 2), MPI_INT, type, "native", MPI_INFO_NULL), 0);
    MPI_Type_free(&type);
    MPI_Type_free(&piece);
    for (int i = 0; i < PIECES; i++)
        out[i] = 1000 * mpitest_rank + i;
    EXPECT_EQ(MPI_File_write_all(f, n ? out : NULL, n, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), n);
    MPI_File_sync(f);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_read_at_all(f, 0, n ? in : NULL, 2 * n, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), n);
    EXPECT(n == 0 || memcmp(in, out, sizeof(out)) == 0);
    check_memory_after_end(f, out, n);
    EXPECT_EQ(MPI_File_write_at_all(f, 0, NULL, 0, MPI_INT, &status), 0); /* no rank has data */
    EXPECT_EQ(get_count(&status, MPI_INT), 0);
    EXPECT_EQ(MPI_File_read_ordered(f, n ? in : NULL, n ? 2 : 0, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), n ? 2 : 0);
    EXPECT(n == 0 || in[0] == out[2 * (mpitest_rank / 2)]);
    MPI_File_close(&f);
}

static void expect_hint(MPI_File f, const char *key, const char *wanted)
{
    char value[MPI_MAX_INFO_VAL] = "";
    int found = 0;
    MPI_Info info;
    MPI_File_get_info(f, &info);
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL - 1, value, &found);
    if (!found || strcmp(value, wanted) != 0) {
        fprintf(stderr, "rank %d: hint %s is '%s', expected '%s'\n", mpitest_rank, key, value, wanted);
        mpitest_failures++;
    }
    MPI_Info_free(&info);
}

/* Rank 0's hints apply, also in MPI_File_set_view: sizes of rounds that differ between ranks would mix the
 * data. */
static void check_hints(const char *name)
{
    enum { WORDS = 40000 };
    MPI_Info info = MPI_INFO_NULL;
    MPI_Datatype piece, type;
    MPI_Comm comm;
    int *out = malloc(WORDS * sizeof(int)), *in = calloc(WORDS, sizeof(int));
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_File f = iotest_open(comm, MPI_INFO_NULL);
    MPI_Comm_free(&comm);
    expect_hint(f, "filename", name);
    MPI_Type_contiguous(10, MPI_INT, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)(10 * sizeof(int)) * mpitest_size, &type);
    MPI_Type_commit(&type);
    if (mpitest_rank == 0) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "cb_buffer_size", "8192");
        MPI_Info_set(info, "romio_cb_write", "enable");
        MPI_Info_set(info, "filename", "another");
        MPI_Info_set(info, "unheard_of", "yes");
    }
    EXPECT_EQ(MPI_File_set_view(f, 40 * (MPI_Offset)mpitest_rank, MPI_INT, type, "native", info), 0);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    MPI_Type_free(&type);
    MPI_Type_free(&piece);
    expect_hint(f, "cb_buffer_size", "8192");
    expect_hint(f, "romio_cb_write", "enable");
    expect_hint(f, "filename", name);
    for (int i = 0; i < WORDS; i++)
        out[i] = mpitest_rank * WORDS + i;
    EXPECT_EQ(MPI_File_write_all(f, out, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(MPI_File_read_at(f, 0, in, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT(memcmp(in, out, WORDS * sizeof(int)) == 0);
    free(out);
    free(in);
    MPI_File_close(&f);
}

/* Checks positions whose file offsets do not fit in 64 bits. */
static void check_large_offsets(MPI_File f)
{
    const MPI_Offset most = INT64_MAX;
    MPI_Offset at = -1;
    int word = 0;
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_seek(f, most, MPI_SEEK_SET), 0);
    EXPECT_CLASS(MPI_File_seek(f, 1, MPI_SEEK_CUR), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_File_get_byte_offset(f, most, &at), MPI_ERR_ARG);
    EXPECT_EQ(MPI_File_seek(f, 5, MPI_SEEK_SET), 0);
    EXPECT_CLASS(MPI_File_read_c(f, &word, (MPI_Count)1 << 61, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
    MPI_File_get_position(f, &at);
    EXPECT_EQ(at, 5);
}

/* Checks that a pipe is refused: it has no offsets. */
static void check_pipe(void)
{
    MPI_File f = MPI_FILE_NULL;
    char name[600];
    int fd = -1;
    snprintf(name, sizeof(name), "%s.pipe", iotest_name);
    if (mpitest_rank == 0) {
        EXPECT_EQ(mkfifo(name, 0600), 0);
        fd = open(name, O_RDWR); /* opens both ends, so that no open waits */
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_CLASS(
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &f),
        MPI_ERR_UNSUPPORTED_OPERATION);
    if (mpitest_rank == 0) {
        close(fd);
        unlink(name);
    }
}

/* Checks that MPI_File_close accepts a file that was deleted before. */
static void check_close_after_deletion(const char *name)
{
    MPI_File f;
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                            MPI_INFO_NULL, &f),
              0);
    if (mpitest_rank == 0)
        EXPECT_EQ(MPI_File_delete(name, MPI_INFO_NULL), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_CLASS(MPI_File_close(&f), MPI_ERR_NO_SUCH_FILE);
    EXPECT(f == MPI_FILE_NULL);
}

int main(int argc, char **argv)
{
    const char *name = iotest_begin(&argc, &argv);
    check_sequential(name);
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    check_split(f);
    check_seek_end(f);
    check_view_without_data(f);
    check_large_offsets(f);
    MPI_File_close(&f);
    check_pipe();
    check_ranks_without_data("enable");
    check_ranks_without_data("disable");
    check_hints(name);
    check_close_after_deletion(name);
    return iotest_end();
}
