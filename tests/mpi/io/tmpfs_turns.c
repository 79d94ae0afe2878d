/* tmpfs_turns.c: on tmpfs one rank of a node writes with system calls while the others copy to a mapping.
 * A rank that is stuck in its system call does not block the others; pieces that share pages arrive
 * completely; a file that is truncated under a mapping is written again and does not end the program.
 * ranks: 3
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "iotest.h"

#define TMPFS  0x01021994
#define LENGTH 1200000

static atomic_int *others; /* number of other ranks that have written */
static int stuck, cuts;
static size_t by_call;

/* Replaces pwrite: rank 0 stays in a call of its turn until all other ranks have written; a write of one
 * byte extends the file and needs no turn. */
ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    by_call += n;
    while (stuck && n > 1 && atomic_load(others) < mpitest_size - 1)
        sched_yield();
    return syscall(SYS_pwrite64, fd, buf, n, offset);
}

/* Truncates the file after its pages were requested. */
int madvise(void *at, size_t length, int advice)
{
    const int rc = (int)syscall(SYS_madvise, at, length, advice);
    if (cuts > 0) {
        cuts--;
        EXPECT_EQ(truncate(iotest_name, 0), 0);
    }
    return rc;
}

static unsigned char out[LENGTH], in[LENGTH];

static void fill_data(int seed)
{
    for (size_t i = 0; i < LENGTH; i++)
        out[i] = (unsigned char)(i * 7 + i / 4093 + (size_t)seed);
    memset(in, 0, LENGTH);
}

static void set_piece_view(MPI_File f, int piece, int turns, int turn)
{
    MPI_Datatype block, type;
    MPI_Type_contiguous(piece, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)piece * turns, &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(MPI_File_set_view(f, (MPI_Offset)piece * turn, MPI_BYTE, type, "native", MPI_INFO_NULL), 0);
    MPI_Type_free(&block);
    MPI_Type_free(&type);
}

/* Rank 0 has the turn and keeps it. The other ranks must not need the turn, nor any pwrite except the byte
 * that extends the file. */
static void check_others_write_without_turn(int there)
{
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    EXPECT_EQ(
        MPI_File_set_view(f, (MPI_Offset)LENGTH * mpitest_rank, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL),
        0);
    fill_data(mpitest_rank);
    atomic_store(others, 0);
    by_call = 0;
    stuck = there && mpitest_rank == 0;
    MPI_Barrier(MPI_COMM_WORLD);
    do { /* rank 0: until it had the turn; others: until they wrote without the turn */
        by_call = 0;
        EXPECT_EQ(MPI_File_write_at(f, 0, out, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE), 0);
    } while (there && (mpitest_rank == 0 ? by_call <= 1 : by_call > 1));
    if (mpitest_rank > 0)
        atomic_fetch_add(others, 1);
    stuck = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_read_at(f, 0, in, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE), 0);
    EXPECT(memcmp(in, out, LENGTH) == 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
}

/* Tests pieces that end within pages, with a piece of no rank, which must keep its contents. */
static void check_pieces(int piece, int collective)
{
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    const int turns = mpitest_size + 1, n = LENGTH / piece * piece;
    if (mpitest_rank == 0) {
        memset(out, 0x5a, LENGTH);
        for (int i = 0; i < turns; i++)
            EXPECT_EQ(MPI_File_write_at(f, (MPI_Offset)i * LENGTH, out, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE),
                      0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    fill_data(mpitest_rank + piece);
    set_piece_view(f, piece, turns, mpitest_rank);
    EXPECT_EQ(
        (collective ? MPI_File_write_at_all : MPI_File_write_at)(f, 0, out, n, MPI_BYTE, MPI_STATUS_IGNORE),
        0);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_read_at(f, 0, in, n, MPI_BYTE, MPI_STATUS_IGNORE), 0);
    EXPECT(memcmp(in, out, (size_t)n) == 0);
    set_piece_view(f, piece, turns, mpitest_size);
    EXPECT_EQ(MPI_File_read_at(f, 0, in, n, MPI_BYTE, MPI_STATUS_IGNORE), 0);
    for (int i = 0; i < n; i++)
        if (in[i] != 0x5a) {
            EXPECT_EQ(in[i], 0x5a);
            break;
        }
    EXPECT_EQ(MPI_File_close(&f), 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void on_sigbus(int sig)
{
    (void)sig;
}

static void check_truncated_file(void)
{
    struct sigaction mine = {.sa_handler = on_sigbus}, old, after;
    MPI_File f;
    if (mpitest_rank != 0)
        return;
    sigaction(SIGBUS, &mine, &old);
    EXPECT_EQ(MPI_File_open(MPI_COMM_SELF, iotest_name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f),
              0);
    set_piece_view(f, 200, 3, 1);
    fill_data(5);
    cuts = 1;
    EXPECT_EQ(MPI_File_write_at(f, 0, out, 40000, MPI_BYTE, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(cuts, 0); /* the write used a mapping: madvise has truncated the file */
    EXPECT_EQ(MPI_File_read_at(f, 0, in, 40000, MPI_BYTE, MPI_STATUS_IGNORE), 0);
    EXPECT(memcmp(in, out, 40000) == 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
    sigaction(SIGBUS, &old, &after);
    EXPECT(after.sa_handler == on_sigbus);
}

int main(int argc, char **argv)
{
    char name[sizeof(iotest_name) + 16];
    struct statfs fs;
    MPI_Win window;
    MPI_Aint size;
    int unit;
    snprintf(name, sizeof(name), "/dev/shm/%s", iotest_begin(&argc, &argv));
    const int there = statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS && access("/dev/shm", W_OK) == 0;
    if (there)
        memcpy(iotest_name, name, sizeof(iotest_name)); /* the string fits into iotest_name */
    MPI_Win_allocate_shared(mpitest_rank == 0 ? 64 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &others, &window);
    MPI_Win_shared_query(window, 0, &size, &unit, &others);
    check_others_write_without_turn(there);
    check_pieces(5000, 0);
    check_pieces(70001, 1);
    check_pieces(200, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (there)
        check_truncated_file();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
    return iotest_end();
}
