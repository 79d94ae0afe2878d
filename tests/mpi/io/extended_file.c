/* extended_file.c: a rank extends a file while the others write small pieces after its old end. Linux
 * publishes the new length before it has cleared the range between the old and the new end. Here that
 * interval lasts until all other ranks wait for the file's lock in the kernel: data that they store
 * through a mapping before is lost.
 * ranks: 2 4
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#include "iotest.h"

enum { ROUNDS = 20, FIRST = 32, PIECE = 4, STRIDE = 12, PIECES = 24, FAR = 1 << 20 };

#define IN_MEMORY 0x01021994 /* tmpfs, which clears a page before another process can map it */

/* Model of the kernel's lock of the file, which write(2) and utimensat(2) take and stores through a
 * mapping do not. */
struct model {
    atomic_int locked, waiting, longer;
};
static struct model *model; /* shared by all ranks */
static int lengthens;       /* the next write call of this rank extends the file */

static void lock_model(void)
{
    atomic_fetch_add(&model->waiting, 1);
    while (atomic_exchange(&model->locked, 1))
        sched_yield();
    atomic_fetch_sub(&model->waiting, 1);
}

static ssize_t extend_file(int fd, const void *buf, size_t n, off_t offset)
{
    static const char zeros[FAR];
    struct stat st;
    struct statfs fs;
    fstat(fd, &st);
    fstatfs(fd, &fs);
    const ssize_t written = syscall(SYS_pwrite64, fd, buf, n, offset);
    atomic_store(&model->longer, 1);
    while (atomic_load(&model->waiting) < mpitest_size - 1)
        sched_yield();
    if (fs.f_type != IN_MEMORY)
        syscall(SYS_pwrite64, fd, zeros, (size_t)(offset - st.st_size), st.st_size);
    return written;
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    if (!lengthens)
        lock_model();
    const ssize_t written =
        lengthens ? extend_file(fd, buf, n, offset) : syscall(SYS_pwrite64, fd, buf, n, offset);
    atomic_store(&model->locked, 0);
    return written;
}

int futimens(int fd, const struct timespec times[2])
{
    lock_model();
    atomic_store(&model->locked, 0);
    return (int)syscall(SYS_utimensat, fd, NULL, times, 0);
}

static unsigned char data_byte(int round, int piece)
{
    return (unsigned char)(1 + (round + mpitest_rank * 7 + piece) % 255);
}

static void write_and_check(MPI_File f, int round)
{
    unsigned char out[PIECES * PIECE], in[PIECES * PIECE];
    const int n = lengthens ? PIECE : PIECES * PIECE;
    for (int i = 0; i < n; i++)
        out[i] = data_byte(round, i / PIECE);
    if (lengthens) {
        atomic_store(&model->longer, 0);
        lock_model();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    while (!lengthens && !atomic_load(&model->longer))
        sched_yield();
    EXPECT_EQ(MPI_File_write_at(f, 0, out, n, MPI_BYTE, MPI_STATUS_IGNORE), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_read_at(f, 0, in, n, MPI_BYTE, MPI_STATUS_IGNORE), 0);
    EXPECT(memcmp(in, out, (size_t)n) == 0);
}

static void test_rounds(void)
{
    MPI_Datatype pieces;
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    MPI_Type_vector(PIECES, PIECE, STRIDE, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    if (lengthens)
        MPI_File_set_view(f, FAR, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    else
        MPI_File_set_view(f, FIRST + mpitest_rank * PIECES * STRIDE, MPI_BYTE, pieces, "native",
                          MPI_INFO_NULL);
    for (int round = 0; round < ROUNDS && !mpitest_failures; round++) {
        EXPECT_EQ(MPI_File_set_size(f, FIRST), 0);
        write_and_check(f, round);
        MPI_Allreduce(MPI_IN_PLACE, &mpitest_failures, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    MPI_File_close(&f);
    MPI_Type_free(&pieces);
}

int main(int argc, char **argv)
{
    MPI_Win win;
    iotest_begin(&argc, &argv);
    MPI_Win_allocate_shared(mpitest_rank ? 0 : sizeof(*model), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &model,
                            &win);
    if (mpitest_rank) {
        MPI_Aint size;
        int unit;
        MPI_Win_shared_query(win, 0, &size, &unit, &model);
    }
    lengthens = mpitest_rank == mpitest_size - 1;
    test_rounds();
    MPI_Win_free(&win);
    return iotest_end();
}
