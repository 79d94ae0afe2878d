/* deaths.c: a rank is killed in a collective write after more and more steps, in a write of its own as an
 * aggregator, or in the middle of a read-modify-write. All other ranks return from the call; a rank whose
 * call succeeded finds all its data in the file; the next call fails at all ranks, and the file can be
 * closed.
 * ranks: 9
 * nodes: 2
 * mpiexec: -enable-recovery
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/syscall.h>

#include "ft/ft.h"

#define WORDS 6000
#define PIECE 25

static int calls_left = -1;
static int torn; /* 1: the write call in which the victim dies writes half of its data */
static int words[WORDS], back[WORDS];
static char name[64];

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    if (calls_left > 0 && --calls_left == 0) {
        if (torn)
            syscall(SYS_pwrite64, fd, buf, n / 2, offset);
        kill_this_rank();
    }
    return syscall(SYS_pwrite64, fd, buf, n, offset);
}

/* Opens a file in which every rank aggregates, in many small rounds. */
static MPI_File open_file(void)
{
    MPI_File f = MPI_FILE_NULL;
    MPI_Datatype piece, type;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "cb_buffer_size", "4096");
    MPI_Info_set(info, "cb_nodes", "8");
    EXPECT_EQ(MPI_File_open(now, name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &f), 0);
    MPI_Info_free(&info);
    MPI_Type_contiguous(PIECE, MPI_INT, &piece);
    MPI_Type_create_resized(piece, 0, PIECE * 4 * size, &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(MPI_File_set_view(f, PIECE * 4 * rank, MPI_INT, type, "native", MPI_INFO_NULL), 0);
    MPI_Type_free(&piece);
    MPI_Type_free(&type);
    for (int i = 0; i < WORDS; i++)
        words[i] = rank * WORDS + i + 1;
    int flag = 1; /* no rank dies while another rank is still in the calls above */
    MPIX_Comm_agree(now, &flag);
    return f;
}

/* Checks the file after a death: if the write succeeded all bytes of this rank are in it. */
static void check_after_death(MPI_File f, int rc)
{
    int flag = 1;
    EXPECT(get_error_class(rc) == MPI_SUCCESS || get_error_class(rc) == MPIX_ERR_PROC_FAILED);
    if (get_error_class(rc) == MPI_SUCCESS) {
        EXPECT_EQ(MPI_File_read_at(f, 0, back, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
        EXPECT(memcmp(words, back, sizeof(words)) == 0);
    }
    MPIX_Comm_agree(now, &flag); /* all ranks know of the death */
    EXPECT_DEATH(MPI_File_write_at_all(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE));
    EXPECT_DEATH(MPI_File_sync(f));
    MPI_File_close(&f); /* may report the death */
    EXPECT(f == MPI_FILE_NULL);
}

/* The victim makes progress `steps` times and then dies. */
static void die_after_steps(int steps)
{
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_File f = open_file();
    int rc = MPI_File_iwrite_at_all(f, 0, words, WORDS, MPI_INT, &r), done = 0;
    if (rank == victim) {
        for (int i = 0; i < steps && !done; i++)
            MPI_Test(&r, &done, MPI_STATUS_IGNORE);
        kill_this_rank();
    }
    if (!rc)
        rc = MPI_Wait(&r, MPI_STATUS_IGNORE);
    check_after_death(f, rc);
}

static void test_death_after_0_steps(void)
{
    die_after_steps(0);
}
static void test_death_after_1_step(void)
{
    die_after_steps(1);
}
static void test_death_after_5_steps(void)
{
    die_after_steps(5);
}
static void test_death_after_20_steps(void)
{
    die_after_steps(20);
}

/* The victim dies before it enters the call. */
static void test_death_before_call(void)
{
    MPI_File f = open_file();
    if (rank == victim)
        kill_this_rank();
    check_after_death(f, MPI_File_write_at_all(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE));
}

static void test_death_in_write(void)
{
    MPI_File f = open_file();
    calls_left = rank == victim ? 2 : -1;
    const int rc = MPI_File_write_at_all(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE);
    if (rank == victim)
        kill_this_rank();
    check_after_death(f, rc);
}

/* Checks the victim's words: each has its former value or the one that the victim wrote. */
static void check_victim(void)
{
    const int fd = open(name, O_RDONLY);
    for (int i = 0; i < WORDS; i++) {
        int word = 0;
        const off_t at = ((off_t)(i / PIECE * size + victim) * PIECE + i % PIECE) * (off_t)sizeof(word);
        EXPECT(pread(fd, &word, sizeof(word), at) >= 0);
        EXPECT(word == 0 || word == victim * WORDS + i + 1);
    }
    close(fd);
}

/* Independent writes. If the file system permits it (tiles.h), ranks read, modify and rewrite blocks under
 * a lock, which the victim holds when it dies. The other ranks get the lock and lose no data. */
static void test_death_in_rewrite(void)
{
    unlink(name);
    int flag = 1;
    MPIX_Comm_agree(now, &flag);
    MPI_File f = open_file();
    torn = 1;
    calls_left = rank == victim ? 1 : -1;
    EXPECT_EQ(MPI_File_write_at(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
    if (rank == victim)
        kill_this_rank();
    torn = 0;
    MPIX_Comm_agree(now, &flag); /* all ranks have written */
    EXPECT_EQ(MPI_File_read_at(f, 0, back, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT(memcmp(words, back, sizeof(words)) == 0);
    check_victim();
    MPIX_Comm_agree(now, &flag);
    EXPECT_DEATH(MPI_File_sync(f));
    MPI_File_close(&f);
}

/* The victim dies during a read: the others get an error, or all existing data. */
static void test_death_in_read(void)
{
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_File f = open_file();
    EXPECT_EQ(MPI_File_write_at_all(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
    MPI_File_sync(f);
    MPI_Barrier(now);
    int rc = MPI_File_iread_at_all(f, 0, back, WORDS, MPI_INT, &r), done;
    if (rank == victim) {
        MPI_Test(&r, &done, MPI_STATUS_IGNORE);
        kill_this_rank();
    }
    if (!rc)
        rc = MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT(get_error_class(rc) == MPI_SUCCESS || get_error_class(rc) == MPIX_ERR_PROC_FAILED);
    EXPECT(rc || memcmp(words, back, sizeof(words)) == 0);
    MPI_File_close(&f);
}

int main(int argc, char **argv)
{
    static void (*const phases[])(void) = {test_death_in_rewrite,     test_death_after_0_steps,
                                           test_death_after_1_step,   test_death_after_5_steps,
                                           test_death_after_20_steps, test_death_before_call,
                                           test_death_in_write,       test_death_in_read};
    int number = (int)getpid();
    mpitest_begin(&argc, &argv);
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof(name), "iotest-%d.tmp", number);
    run_phases(phases, (int)(sizeof(phases) / sizeof(phases[0])));
    unlink(name);
    return finalize_and_get_status();
}
