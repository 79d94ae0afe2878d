/* faults.c: failing file systems. This program interposes on the library's system calls: it shortens
 * writes, and makes them fail at one rank in the middle of an operation. Every affected rank must get an
 * error, and data that was reported as written must be in the file.
 * ranks: 3
 * nodes: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "iotest.h"

static struct {
    int error;     /* errno of the failing call; 0: no call fails */
    int countdown; /* number of calls that still succeed */
    int sync_error, close_error;
    size_t max_bytes; /* most bytes of one read or write call; 0: no limit */
    int enabled;      /* faults occur only while the file operation runs */
} fault;

static int next_call_fails(void)
{
    if (!fault.enabled || !fault.error || fault.countdown-- > 0)
        return 0;
    errno = fault.error;
    return 1;
}

static size_t limit_length(size_t n)
{
    return fault.enabled && fault.max_bytes && n > fault.max_bytes ? fault.max_bytes : n;
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    return next_call_fails() ? -1 : syscall(SYS_pwrite64, fd, buf, limit_length(n), offset);
}

ssize_t pread(int fd, void *buf, size_t n, off_t offset)
{
    return syscall(SYS_pread64, fd, buf, limit_length(n), offset);
}

ssize_t pwritev(int fd, const struct iovec *list, int n, off_t offset)
{
    if (next_call_fails())
        return -1;
    return fault.max_bytes ? pwrite(fd, list[0].iov_base, list[0].iov_len, offset)
                           : syscall(SYS_pwritev, fd, list, n, (long)offset, 0L);
}

int fsync(int fd)
{
    if (fault.sync_error) {
        errno = fault.sync_error;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

/* Replaces close; while faults are on, only the file itself is closed. */
int close(int fd)
{
    const int rc = (int)syscall(SYS_close, fd);
    if (fault.close_error && fault.enabled) {
        errno = fault.close_error;
        return -1;
    }
    return rc;
}

#define WORDS 5000

static const char *sieving = "disable";

/* Opens a file whose ranks are interleaved in pieces of 5 words. */
static MPI_File open_interleaved(const char *cb)
{
    MPI_Datatype piece, type;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", cb);
    MPI_Info_set(info, "romio_cb_read", cb);
    MPI_Info_set(info, "cb_buffer_size", "4096");
    MPI_Info_set(info, "fishplate_map", "disable"); /* one call per piece; mapped.c tests mappings */
    MPI_Info_set(info, "romio_ds_write", sieving);
    MPI_File f = iotest_open(MPI_COMM_WORLD, info);
    MPI_Type_contiguous(5, MPI_INT, &piece);
    MPI_Type_create_resized(piece, 0, 20 * mpitest_size, &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(MPI_File_set_view(f, 20 * mpitest_rank, MPI_INT, type, "native", MPI_INFO_NULL), 0);
    MPI_Type_free(&piece);
    MPI_Type_free(&type);
    MPI_Info_free(&info);
    return f;
}

static int words[WORDS], back[WORDS];

static void fill_words(void)
{
    for (int i = 0; i < WORDS; i++) {
        words[i] = mpitest_rank * WORDS + i + 1;
        back[i] = 0;
    }
}

/* Short writes and reads: the library repeats the call for the remaining bytes. */
static void check_short_transfers(const char *cb)
{
    MPI_Status status;
    MPI_File f = open_interleaved(cb);
    fill_words();
    fault.error = 0;
    fault.max_bytes = 7;
    fault.enabled = 1;
    EXPECT_EQ(MPI_File_write_at_all(f, 0, words, WORDS, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), WORDS);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_read_at_all(f, 0, back, WORDS, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), WORDS);
    EXPECT(memcmp(words, back, sizeof(words)) == 0);
    fault.enabled = 0;
    fault.max_bytes = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_set_size(f, 0), 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
}

/* Rank 0's system calls fail from some point on (rank 0 is an aggregator if any rank is). All ranks of a
 * collective call get the error, and the next call works. */
static void check_collective(const char *cb, int error, int errclass)
{
    char text[MPI_MAX_ERROR_STRING];
    MPI_Request request;
    int n;
    MPI_File f = open_interleaved(cb);
    fill_words();
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        int rc;
        fault.error = mpitest_rank == 0 ? error : 0;
        fault.countdown = 2;
        fault.enabled = 1;
        if (nonblocking) {
            EXPECT_EQ(MPI_File_iwrite_at_all(f, 0, words, WORDS, MPI_INT, &request), 0);
            rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            rc = MPI_File_write_at_all(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE);
        }
        fault.enabled = 0;
        EXPECT_CLASS(rc, errclass);
        MPI_Error_string(rc, text, &n);
        EXPECT(strstr(text, iotest_name) != NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_write_at_all(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(MPI_File_read_at_all(f, 0, back, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT(memcmp(words, back, sizeof(words)) == 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
}

/* Checks that the file contains all data that an independent write reports as written, with one call per
 * piece and with one call for many pieces. */
static void check_independent(const char *ds, size_t most, int good)
{
    MPI_Status status;
    sieving = ds;
    MPI_File f = open_interleaved("disable");
    fill_words();
    EXPECT_EQ(MPI_File_set_size(f, 0), 0);
    fault.error = EIO;
    fault.countdown = good;
    fault.max_bytes = most;
    fault.enabled = 1;
    EXPECT_CLASS(MPI_File_write_at(f, 0, words, WORDS, MPI_INT, &status), MPI_ERR_IO);
    fault.enabled = 0;
    fault.max_bytes = 0;
    const int count = get_count(&status, MPI_INT);
    EXPECT(count > 0 && count < WORDS);
    if (most == 0)
        EXPECT_EQ(count, 5 * good);
    EXPECT_EQ(MPI_File_read_at(f, 0, back, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT(memcmp(words, back, (size_t)count * sizeof(int)) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_close(&f), 0);
    sieving = "disable";
}

/* Checks errors that only MPI_File_sync or MPI_File_close reports, at one rank. */
static void check_late_errors(void)
{
    const int last = mpitest_rank == mpitest_size - 1;
    MPI_File f = open_interleaved("automatic");
    fault.sync_error = last ? EIO : 0;
    EXPECT_CLASS(MPI_File_sync(f), MPI_ERR_IO);
    fault.sync_error = 0;
    EXPECT_EQ(MPI_File_sync(f), 0);
    fault.close_error = last ? EDQUOT : 0;
    fault.enabled = 1;
    EXPECT_CLASS(MPI_File_close(&f), MPI_ERR_QUOTA);
    EXPECT(f == MPI_FILE_NULL);
    fault.enabled = fault.close_error = 0;
}

/* With a limit on file sizes the part below the limit is written, and the rest is an error. */
static void check_file_size_limit(void)
{
    struct rlimit was, limit;
    MPI_Status status;
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(MPI_File_set_size(f, 0), 0);
    getrlimit(RLIMIT_FSIZE, &was);
    limit = was;
    limit.rlim_cur = 6000;
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_CLASS(MPI_File_write_at(f, 0, words, WORDS, MPI_INT, &status), MPI_ERR_NO_SPACE);
    EXPECT_EQ(get_count(&status, MPI_BYTE), 6000);
    EXPECT_CLASS(MPI_File_write_at_all(f, mpitest_rank * 4000, words, 1000, MPI_INT, &status),
                 MPI_ERR_NO_SPACE);
    EXPECT_CLASS(MPI_File_set_size(f, 7000), MPI_ERR_NO_SPACE);
    setrlimit(RLIMIT_FSIZE, &was);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_close(&f), 0);
}

/* A file that another process deletes remains usable while it is open; the next open reports that the file
 * does not exist. */
static void check_file_deleted_while_open(const char *name)
{
    MPI_File f = open_interleaved("enable");
    fill_words();
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 0)
        unlink(name);
    EXPECT_EQ(MPI_File_write_at_all(f, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
    EXPECT_CLASS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f),
                 MPI_ERR_NO_SUCH_FILE);
}

int main(int argc, char **argv)
{
    static const char *const cb[] = {"enable", "disable"};
    const char *name = iotest_begin(&argc, &argv);
    for (int i = 0; i < 2; i++) {
        check_short_transfers(cb[i]);
        check_collective(cb[i], EIO, MPI_ERR_IO);
        check_collective(cb[i], ENOSPC, MPI_ERR_NO_SPACE);
        check_collective(cb[i], EDQUOT, MPI_ERR_QUOTA);
    }
    check_independent("disable", 0, 100);
    check_independent("automatic", 400, 60);
    check_late_errors();
    check_file_size_limit();
    check_file_deleted_while_open(name);
    return iotest_end();
}
