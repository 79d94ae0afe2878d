/* tiles.c: if the views of all ranks cover the file, small pieces are written by read-modify-write under
 * locks: few system calls, and no data is lost that other ranks write at the same time, through the same
 * handle or another one, independently or collectively. Holes that belong to no rank do not change. The
 * library does not wait for locks of other programs.
 * ranks: 4 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "iotest.h"

#define DISK      0xEF53 /* f_type of ext4 */
#define PIECE     200    /* words, not a multiple of a page */
#define PIECES    400
#define WORDS     (PIECE * PIECES)
#define ROUNDS    6
#define HOLE_BYTE 0x7a

static int calls;
static off_t other_at = -1; /* offset at which another program writes before the next call; -1: none */

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    const char byte = HOLE_BYTE;
    calls++;
    if (other_at >= 0)
        syscall(SYS_pwrite64, fd, &byte, 1, other_at);
    other_at = -1;
    return syscall(SYS_pwrite64, fd, buf, n, offset);
}

static bool is_on_disk_file_system(void)
{
    struct statfs fs;
    return statfs(".", &fs) == 0 && fs.f_type == DISK;
}

/* Sets a view with interleaved ranks; `more` pieces belong to no rank. */
static void set_view(MPI_File f, int turn, int turns, int more, int skip)
{
    MPI_Datatype piece, type;
    const MPI_Aint bytes = PIECE * (MPI_Aint)sizeof(int);
    MPI_Type_contiguous(PIECE, MPI_INT, &piece);
    MPI_Type_create_resized(piece, 0, bytes * (turns + more), &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(MPI_File_set_view(f, bytes * (turn + (MPI_Offset)skip * turns), MPI_INT, type, "native",
                                MPI_INFO_NULL),
              0);
    MPI_Type_free(&piece);
    MPI_Type_free(&type);
}

static void fill_words(int *words, int round, int who)
{
    for (int i = 0; i < WORDS; i++)
        words[i] = round * 1000003 + who * WORDS + i;
}

static int words[WORDS], back[WORDS];

static void expect_own_words(MPI_File f, int round, int who)
{
    fill_words(words, round, who);
    memset(back, 0, sizeof(back));
    EXPECT_EQ(MPI_File_read_at(f, 0, back, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(memcmp(words, back, sizeof(words)), 0);
}

/* All ranks write at the same time; the last rank uses other piece sizes, so that some calls rewrite
 * blocks and some do not. */
static void test_concurrent_writes(void)
{
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    set_view(f, mpitest_rank, mpitest_size, 0, 0);
    for (int round = 0; round < ROUNDS; round++) {
        const int step = mpitest_rank == mpitest_size - 1 ? PIECE + 7 * round : WORDS;
        fill_words(words, round, mpitest_rank);
        calls = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        for (int at = 0; at < WORDS; at += step)
            EXPECT_EQ(MPI_File_write_at(f, at, words + at, at + step > WORDS ? WORDS - at : step, MPI_INT,
                                        MPI_STATUS_IGNORE),
                      0);
        if (step == WORDS && is_on_disk_file_system())
            EXPECT(calls < PIECES / 4);
        MPI_Barrier(MPI_COMM_WORLD);
        expect_own_words(f, round, mpitest_rank);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    EXPECT_EQ(MPI_File_close(&f), 0);
}

/* Rank 0 writes its share through the common handle; the others write theirs through separate handles,
 * which do not know the common view. */
static void test_other_handles(void)
{
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL), own = iotest_open(MPI_COMM_SELF, MPI_INFO_NULL);
    set_view(f, mpitest_rank, mpitest_size, 0, 0);
    set_view(own, mpitest_rank, mpitest_size, 0, 0);
    for (int round = 0; round < ROUNDS; round++) {
        fill_words(words, round, mpitest_rank);
        MPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(MPI_File_write_at(mpitest_rank == 0 ? f : own, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE),
                  0);
        MPI_Barrier(MPI_COMM_WORLD);
        expect_own_words(own, round, mpitest_rank);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    EXPECT_EQ(MPI_File_close(&own), 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
}

/* A collective write through one handle while rank 0 rewrites blocks through another. */
static void test_rewrite_during_collective(void)
{
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL), all = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    MPI_Request request;
    set_view(f, mpitest_rank, mpitest_size, 0, 0);
    set_view(all, mpitest_rank, mpitest_size, 0, 0);
    for (int round = 0; round < ROUNDS; round++) {
        const int none = mpitest_rank == 0;
        fill_words(words, round, mpitest_rank);
        MPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(MPI_File_iwrite_at_all(all, 0, words, none ? 0 : WORDS, MPI_INT, &request), 0);
        if (none)
            EXPECT_EQ(MPI_File_write_at(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
        EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
        MPI_Barrier(MPI_COMM_WORLD);
        expect_own_words(f, round, mpitest_rank);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    EXPECT_EQ(MPI_File_close(&all), 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
}

/* Tests pieces in no rank's view: `more` pieces, or the first pieces of a rank whose view begins `skip`
 * pieces later. Another program writes a byte there just before the first call; a rank that read and
 * rewrote the hole would lose that byte. */
static void test_holes(int more, int skip)
{
    const off_t bytes = PIECE * (off_t)sizeof(int);
    const int last = mpitest_size - 1;
    unsigned char got = 0;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "fishplate_map", "disable");
    MPI_File f = iotest_open(MPI_COMM_WORLD, info);
    EXPECT_EQ(MPI_File_set_size(f, 0), 0);
    set_view(f, mpitest_rank, mpitest_size, more, mpitest_rank == last ? skip : 0);
    fill_words(words, 1, mpitest_rank);
    if (mpitest_rank == 0) {
        const off_t at = ((mpitest_size + more) * 10 + (more ? mpitest_size : last)) * bytes;
        const int fd = open(iotest_name, O_RDWR);
        other_at = at;
        EXPECT_EQ(MPI_File_write_at(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
        EXPECT_EQ(pread(fd, &got, 1, at), 1);
        EXPECT_EQ(got, HOLE_BYTE);
        close(fd);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_close(&f), 0);
    MPI_Info_free(&info);
}

/* The program itself holds a POSIX lock on the file: writing must not wait for it. */
static void test_foreign_lock(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    const int fd = open(iotest_name, O_RDWR);
    set_view(f, mpitest_rank, mpitest_size, 0, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 0)
        EXPECT_EQ(fcntl(fd, F_SETLK, &lock), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    fill_words(words, 9, mpitest_rank);
    EXPECT_EQ(MPI_File_write_at(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_own_words(f, 9, mpitest_rank);
    EXPECT_EQ(MPI_File_close(&f), 0);
    close(fd);
}

int main(int argc, char **argv)
{
    iotest_begin(&argc, &argv);
    test_concurrent_writes();
    test_other_handles();
    test_rewrite_during_collective();
    test_holes(1, 0);
    test_holes(0, 50);
    test_foreign_lock();
    return iotest_end();
}
