/* disk_turns.c: on a disk file system ranks of one node write batches of pieces one rank after another. A
 * rank that is stuck in its turn does not block the others, and every piece is written, in views that
 * cover the file and in views with holes.
 * ranks: 2
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "iotest.h"

#define PIECE  (16 << 10)
#define PIECES 64
#define LENGTH (PIECE * PIECES)

static atomic_int *others, *inside; /* number of ranks that have written; 1: rank 0 is in its turn */
static int stuck;

/* Replaces pwrite: rank 0 stays in the first call of its turn until all other ranks have written. */
ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    if (stuck)
        atomic_store(inside, 1);
    while (stuck && atomic_load(others) < mpitest_size - 1)
        sched_yield();
    return syscall(SYS_pwrite64, fd, buf, n, offset);
}

static void check_pieces(int more, int collective, int hangs)
{
    static unsigned char out[LENGTH], in[LENGTH];
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    MPI_Datatype block, type;
    MPI_Type_contiguous(PIECE, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)PIECE * (mpitest_size + more), &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(MPI_File_set_view(f, (MPI_Offset)PIECE * mpitest_rank, MPI_BYTE, type, "native", MPI_INFO_NULL),
              0);
    for (size_t i = 0; i < LENGTH; i++)
        out[i] = (unsigned char)(i * 7 + i / 4093 + (size_t)(mpitest_rank + more + hangs));
    if (mpitest_rank == 0) {
        atomic_store(others, 0);
        atomic_store(inside, 0);
    }
    stuck = hangs && mpitest_rank == 0;
    MPI_Barrier(MPI_COMM_WORLD);
    while (hangs && mpitest_rank > 0 && !atomic_load(inside))
        sched_yield();
    EXPECT_EQ((collective ? MPI_File_write_at_all : MPI_File_write_at)(f, 0, out, LENGTH, MPI_BYTE,
                                                                       MPI_STATUS_IGNORE),
              0);
    if (mpitest_rank > 0)
        atomic_fetch_add(others, 1);
    stuck = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_read_at(f, 0, in, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE), 0);
    EXPECT(memcmp(in, out, LENGTH) == 0);
    MPI_Type_free(&block);
    MPI_Type_free(&type);
    EXPECT_EQ(MPI_File_close(&f), 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Win window;
    MPI_Aint size;
    int unit;
    iotest_begin(&argc, &argv);
    MPI_Win_allocate_shared(mpitest_rank == 0 ? 64 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &others, &window);
    MPI_Win_shared_query(window, 0, &size, &unit, &others);
    inside = others + 1;
    for (int more = 0; more < 2; more++) {
        check_pieces(more, 0, 1);
        check_pieces(more, 0, 0);
        check_pieces(more, 1, 0);
    }
    MPI_Win_free(&window);
    return iotest_end();
}
