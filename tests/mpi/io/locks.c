/* locks.c: file systems without locks, such as NFS without its lock daemon: operations that need locks
 * fail at once with an error that gives the reason, others work; and file systems with locks of processes
 * only, not of open files. This program interposes on fcntl.
 * ranks: 4
 * nodes: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "between.h"
#include "iotest.h"

static int lock_error, only_posix, locks;

int intercept_fcntl(int fd, int command, void *arg)
{
    const int open_file = command == F_OFD_SETLK || command == F_OFD_SETLKW;
    if (open_file || command == F_SETLK || command == F_SETLKW) {
        locks++;
        if (lock_error || (open_file && only_posix)) {
            errno = lock_error ? lock_error : EINVAL;
            return -1;
        }
    }
    return (int)syscall(SYS_fcntl, fd, command, arg);
}

static void expect_clear_error(int rc)
{
    char text[MPI_MAX_ERROR_STRING];
    int n;
    EXPECT_CLASS(rc, MPI_ERR_IO);
    MPI_Error_string(rc, text, &n);
    EXPECT(strstr(text, iotest_name) && strstr(text, "lock"));
}

static void check_without_locks(int error, int alone)
{
    int value = mpitest_rank, flag = 1;
    /* ENOLCK fails at the last rank only, other errors at all ranks. */
    lock_error = mpitest_rank == mpitest_size - 1 || error != ENOLCK ? error : 0;
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    const int rc = MPI_File_set_atomicity(f, 1);
    EXPECT_CLASS(rc, MPI_ERR_IO);
    if (lock_error)
        expect_clear_error(rc);
    EXPECT_EQ(MPI_File_get_atomicity(f, &flag), 0);
    EXPECT_EQ(flag, 0);
    lock_error = error;
    if (alone)
        EXPECT_EQ(MPI_File_write_shared(f, &value, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
    else
        expect_clear_error(MPI_File_write_shared(f, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    EXPECT_EQ(MPI_File_write_at_all(f, 4 * mpitest_rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
    lock_error = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_close(&f), 0);
}

/* Every rank advances the shared pointer: no position is assigned twice. */
static void check_process_locks(void)
{
    enum { EACH = 50 };
    static int seen[EACH * 64];
    only_posix = 1;
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    EXPECT_EQ(MPI_File_set_size(f, 0), 0);
    for (int i = 0; i < EACH; i++) {
        const int value = mpitest_rank * EACH + i + 1;
        EXPECT_EQ(MPI_File_write_shared(f, &value, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_read_at(f, 0, seen, EACH * mpitest_size, MPI_INT, MPI_STATUS_IGNORE), 0);
    static int times[EACH * 64 + 1];
    for (int i = 0; i < EACH * mpitest_size; i++)
        if (seen[i] >= 0 && seen[i] <= EACH * mpitest_size)
            times[seen[i]]++;
    for (int i = 1; i <= EACH * mpitest_size; i++)
        EXPECT_EQ(times[i], 1);
    EXPECT_EQ(MPI_File_set_atomicity(f, 1), 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
    only_posix = 0;
}

int main(int argc, char **argv)
{
    iotest_begin(&argc, &argv);
    const int alone = iotest_one_node(); /* on one node a shared pointer needs no locks */
    check_without_locks(ENOLCK, alone);
    check_without_locks(ENOSYS, alone);
    EXPECT(locks > 0);
    check_process_locks();
    return iotest_end();
}
