/* io.c: a rank that has a file open dies. Every collective call of the others on that file returns
 * MPIX_ERR_PROC_FAILED; independent calls still work, and so does a file that the living ranks open
 * together.
 *
 * ranks: 9
 * nodes: 3
 * mpiexec: -enable-recovery
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

#define BYTES 100000

static char name[256], *out, *in;
static MPI_File file;

static void open_file(void)
{
    EXPECT_CLASS(MPI_File_open(now, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
                 MPI_SUCCESS);
    memset(out, rank + 1, BYTES);
    EXPECT_CLASS(
        MPI_File_write_at_all(file, (MPI_Offset)rank * BYTES, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
        MPI_SUCCESS);
    MPI_Barrier(now);
}

/* The victim dies and the others detect it: a later call fails even if it could have succeeded before. */
static void die_or_detect_death(void)
{
    int x;
    if (rank == victim)
        kill_this_rank();
    EXPECT_DEATH(MPI_Recv(&x, 1, MPI_INT, victim, 0, now, MPI_STATUS_IGNORE));
}

static void check_independent_calls(void)
{
    memset(in, 0, BYTES);
    EXPECT_CLASS(MPI_File_read_at(file, (MPI_Offset)rank * BYTES, in, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                 MPI_SUCCESS);
    EXPECT(memcmp(in, out, BYTES) == 0);
    EXPECT_CLASS(MPI_File_write_at(file, (MPI_Offset)rank * BYTES, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                 MPI_SUCCESS);
}

static void close_file(void)
{
    check_independent_calls();
    int rc = MPI_File_close(&file);
    if (rc != MPI_SUCCESS)
        EXPECT_DEATH(rc);
    EXPECT(file == MPI_FILE_NULL);
}

/* The victim dies inside a collective access while the others wait for it. */
static void test_death_inside_access(void)
{
    open_file();
    if (rank == victim)
        kill_this_rank();
    EXPECT_DEATH(
        MPI_File_write_at_all(file, (MPI_Offset)rank * BYTES, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    close_file();
}

static void test_at_offset(void)
{
    open_file();
    die_or_detect_death();
    EXPECT_DEATH(MPI_File_read_at_all(file, 0, in, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    EXPECT_DEATH(MPI_File_write_at_all(file, 0, out, 0, MPI_BYTE, MPI_STATUS_IGNORE));
    close_file();
}

static void test_at_pointer(void)
{
    open_file();
    die_or_detect_death();
    EXPECT_DEATH(MPI_File_write_all(file, out, 10, MPI_BYTE, MPI_STATUS_IGNORE));
    EXPECT_DEATH(MPI_File_read_ordered(file, in, 10, MPI_BYTE, MPI_STATUS_IGNORE));
    close_file();
}

static void test_nonblocking(void)
{
    MPI_Request r = MPI_REQUEST_NULL;
    open_file();
    if (rank == victim)
        kill_this_rank();
    int rc = MPI_File_iwrite_at_all(file, (MPI_Offset)rank * BYTES, out, BYTES, MPI_BYTE, &r);
    rc = rc ? rc : MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT_DEATH(rc);
    close_file();
}

static void test_split_collective(void)
{
    open_file();
    if (rank == victim)
        kill_this_rank();
    int rc = MPI_File_write_at_all_begin(file, (MPI_Offset)rank * BYTES, out, BYTES, MPI_BYTE);
    rc = rc ? rc : MPI_File_write_at_all_end(file, out, MPI_STATUS_IGNORE);
    EXPECT_DEATH(rc);
    close_file();
}

static void test_file_operations(void)
{
    MPI_File other;
    open_file();
    die_or_detect_death();
    EXPECT_DEATH(MPI_File_set_size(file, 100 * BYTES));
    EXPECT_DEATH(MPI_File_preallocate(file, 100 * BYTES));
    EXPECT_DEATH(MPI_File_sync(file));
    EXPECT_DEATH(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    EXPECT_DEATH(MPI_File_set_atomicity(file, 1));
    EXPECT_DEATH(MPI_File_open(now, name, MPI_MODE_RDWR, MPI_INFO_NULL, &other));
    close_file();
}

static void test_collective_close(void)
{
    open_file();
    if (rank == victim)
        kill_this_rank();
    close_file();
}

int main(int argc, char **argv)
{
    static void (*const phases[])(void) = {
        test_death_inside_access, test_at_offset,       test_at_pointer,      test_nonblocking,
        test_split_collective,    test_file_operations, test_collective_close};
    mpitest_begin(&argc, &argv);
    snprintf(name, sizeof(name), "%s/fishplate-ft-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             (int)getpid());
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    out = malloc(BYTES);
    in = malloc(BYTES);
    run_phases(phases, sizeof(phases) / sizeof(phases[0]));
    open_file();
    EXPECT_CLASS(MPI_File_read_at_all(file, (MPI_Offset)rank * BYTES, in, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                 MPI_SUCCESS);
    EXPECT(memcmp(in, out, BYTES) == 0);
    EXPECT_CLASS(MPI_File_close(&file), MPI_SUCCESS);
    if (rank == 0)
        MPI_File_delete(name, MPI_INFO_NULL);
    free(out);
    free(in);
    return finalize_and_get_status();
}
