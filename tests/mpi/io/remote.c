/* remote.c: files of an NFS server. This program interposes on the library's system calls and reports its
 * folder as an NFS mount. Locks are polled, since a waiting client queries its server seldom. Small pieces
 * with holes lock the whole file, so that the client can send pages. A mount with local locks (nolock,
 * local_lock) is an error between nodes. The job nfs of tests/rig tests real clients and servers.
 * ranks: 4
 * nodes: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "between.h"
#include "iotest.h"

#define NFS    0x6969
#define WORDS  500
#define ROUNDS 20

static struct {
    const char *lock_option; /* mount option about locks */
    int denials_left;        /* number of requests still to be refused, as if another client held the lock */
    int lock_requests, lock_waits;     /* lock requests without waiting, and with waiting in the kernel */
    int whole_file_locks, range_locks; /* exclusive locks granted for the whole file and for parts */
} nfs = {.lock_option = "none"};

int fstatfs(int fd, struct statfs *out)
{
    const int rc = (int)syscall(SYS_fstatfs, fd, out);
    if (rc == 0)
        out->f_type = NFS;
    return rc;
}

/* Returns a simulated list of mounts with one line, for this folder. */
static FILE *open_mount_list(void)
{
    static char text[256];
    struct stat st;
    if (stat(".", &st) != 0)
        return NULL;
    snprintf(text, sizeof(text), "70 29 %u:%u / /far rw - nfs4 server:/ rw,vers=4.1,hard,local_lock=%s\n",
             major(st.st_dev), minor(st.st_dev), nfs.lock_option);
    return fmemopen(text, strlen(text), "r");
}

typedef FILE *(*open_function)(const char *, const char *);

static FILE *intercept_fopen(const char *path, const char *mode)
{
    static open_function next;
    if (strcmp(path, "/proc/self/mountinfo") == 0)
        return open_mount_list();
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "fopen");
    return next(path, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    return intercept_fopen(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    return intercept_fopen(path, mode);
}

int intercept_fcntl(int fd, int command, void *arg)
{
    const bool waits = command == F_OFD_SETLKW || command == F_SETLKW;
    const bool requests = command == F_OFD_SETLK || command == F_SETLK;
    const struct flock *lock = arg;
    if (!(waits || requests) || lock->l_type == F_UNLCK)
        return (int)syscall(SYS_fcntl, fd, command, arg);
    nfs.lock_requests += requests;
    nfs.lock_waits += waits;
    if (nfs.denials_left > 0) {
        nfs.denials_left--;
        errno = nfs.denials_left % 2 ? EAGAIN : EACCES; /* systems differ in the error number */
        return -1;
    }
    const int rc = (int)syscall(SYS_fcntl, fd, command, arg);
    nfs.whole_file_locks += rc == 0 && lock->l_type == F_WRLCK && lock->l_start == 0 && lock->l_len == 0;
    nfs.range_locks += rc == 0 && lock->l_type == F_WRLCK && lock->l_len != 0;
    return rc;
}

static void expect_error_text(int rc)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;
    EXPECT_CLASS(rc, MPI_ERR_IO);
    MPI_Error_string(rc, text, &n);
    EXPECT(strstr(text, iotest_name) && strstr(text, "nolock") && strstr(text, "local_lock"));
}

/* Tests a mount with local locks, on which fcntl succeeds nevertheless. */
static void check_local_locks(const char *option, int alone)
{
    int value = mpitest_rank, flag = 1;
    nfs.lock_option = option;
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    const int rc = MPI_File_set_atomicity(f, 1);
    const int shared = MPI_File_write_shared(f, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    if (alone) {
        EXPECT_EQ(rc, 0);
        EXPECT_EQ(shared, 0);
    } else {
        expect_error_text(rc);
        expect_error_text(shared);
        EXPECT_EQ(MPI_File_get_atomicity(f, &flag), 0);
        EXPECT_EQ(flag, 0);
    }
    EXPECT_EQ(MPI_File_write_at(f, 4 * mpitest_rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
    nfs.lock_option = "none";
}

static void set_view(MPI_File f, MPI_Datatype element, int step)
{
    MPI_Datatype type;
    int size;
    MPI_Type_size(element, &size);
    MPI_Type_create_resized(element, 0, (MPI_Aint)size * step, &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(MPI_File_set_view(f, 4, element, type, "native", MPI_INFO_NULL), 0);
    MPI_Type_free(&type);
}

/* A lock that another process holds is requested until it is granted; no rank waits in the kernel. */
static void check_denied_locks(MPI_File f)
{
    int value = 7, got = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    nfs.lock_requests = nfs.lock_waits = 0;
    nfs.denials_left = 9;
    EXPECT_EQ(MPI_File_write_at(f, 1000 + mpitest_rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(nfs.denials_left, 0);
    EXPECT(nfs.lock_requests >= 10);
    nfs.denials_left = 5;
    EXPECT_EQ(MPI_File_read_at(f, 1000 + mpitest_rank, &got, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(got, 7);
    EXPECT_EQ(nfs.denials_left, 0);
    EXPECT_EQ(nfs.lock_waits, 0);
}

/* All ranks write the same range: the data that a rank reads comes from a single rank. */
static void check_atomic_writes(MPI_File f)
{
    static int words[WORDS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WORDS; i++)
            words[i] = 1 + mpitest_rank + round * mpitest_size;
        EXPECT_EQ(MPI_File_write_at(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
        EXPECT_EQ(MPI_File_read_at(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
        int other = 0;
        for (int i = 1; i < WORDS; i++)
            other += words[i] != words[0];
        EXPECT_EQ(other, 0);
    }
}

static void check_locks(int atomic)
{
    static char pages[2 << 13];
    MPI_Datatype large;
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    MPI_Type_contiguous(1 << 13, MPI_BYTE, &large);
    MPI_Type_commit(&large);
    set_view(f, MPI_INT, 2);
    EXPECT_EQ(MPI_File_set_atomicity(f, atomic), 0);
    if (atomic)
        check_denied_locks(f);
    nfs.whole_file_locks = nfs.range_locks = nfs.lock_waits = 0;
    if (atomic)
        check_atomic_writes(f);
    else
        EXPECT_EQ(MPI_File_write_at(f, 0, pages, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(nfs.whole_file_locks, atomic ? ROUNDS : 1);
    EXPECT_EQ(nfs.range_locks, 0);
    /* Pieces in separate pages lock only their own ranges. */
    set_view(f, large, 2);
    nfs.whole_file_locks = nfs.range_locks = 0;
    EXPECT_EQ(MPI_File_write_at(f, 0, pages, 2, large, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(nfs.whole_file_locks, 0);
    EXPECT_EQ(nfs.range_locks, atomic);
    EXPECT_EQ(nfs.lock_waits, 0);
    MPI_Type_free(&large);
    EXPECT_EQ(MPI_File_close(&f), 0);
}

int main(int argc, char **argv)
{
    iotest_begin(&argc, &argv);
    const int alone = iotest_one_node();
    check_local_locks("all", alone);
    check_local_locks("posix", alone);
    check_locks(1);
    check_locks(0);
    return iotest_end();
}
