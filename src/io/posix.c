/* posix.c: system calls on files. A short write is followed by a write of the rest, which reports the
 * error if there is one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/counter.h"
#include "io/nfs.h"

static COUNTER(written, "io_bytes_written", "Bytes written to files.");
static COUNTER(read_in, "io_bytes_read", "Bytes read from files.");
static COUNTER(calls, "io_calls", "System calls that read or wrote files.");

#define CALL_MAX ((size_t)1 << 30) /* bytes of one system call; Linux transfers less than 2 GiB */

static int errno_error_class(int error)
{
    switch (error) {
    case ENOENT:
        return MPI_ERR_NO_SUCH_FILE;
    case EACCES:
    case EPERM:
        return MPI_ERR_ACCESS;
    case EEXIST:
        return MPI_ERR_FILE_EXISTS;
    case ENOSPC:
    case EFBIG:
        return MPI_ERR_NO_SPACE;
    case EDQUOT:
        return MPI_ERR_QUOTA;
    case EROFS:
        return MPI_ERR_READ_ONLY;
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
        return MPI_ERR_BAD_FILE;
    case ETXTBSY:
        return MPI_ERR_FILE_IN_USE;
    case ENOMEM:
        return MPI_ERR_NO_MEM;
    default:
        return MPI_ERR_IO;
    }
}

int posix_error(const char *name, const char *doing, int error)
{
    return err_set(errno_error_class(error), "%s: %s failed: %s", name, doing, strerror(error));
}

/* Advances the list, from piece i on, by `bytes` transferred bytes. Returns the first incomplete piece, whose
 * completed part is cut off. */
static int iovec_advance(struct iovec *list, int i, int n, size_t bytes)
{
    while (i < n && bytes >= list[i].iov_len)
        bytes -= list[i++].iov_len;
    if (i < n) {
        list[i].iov_base = (char *)list[i].iov_base + bytes;
        list[i].iov_len -= bytes;
    }
    return i;
}

/* Executes one system call, which may transfer only the first part of the list. */
static ssize_t transfer_once(const struct file *f, bool write, const struct iovec *list, int n,
                             int64_t offset)
{
    const size_t first = MIN(list[0].iov_len, CALL_MAX);
    counter_add(&calls, 1);
    if (n == 1)
        return write ? pwrite(f->fd, list[0].iov_base, first, offset)
                     : pread(f->fd, list[0].iov_base, first, offset);
    return write ? pwritev(f->fd, list, MIN(n, IOV_MAX), offset)
                 : preadv(f->fd, list, MIN(n, IOV_MAX), offset);
}

int posix_transfer_list(struct file *f, bool write, struct iovec *list, int n, int64_t offset, size_t *done)
{
    *done = 0;
    for (int i = 0; i < n;) {
        const ssize_t got = transfer_once(f, write, list + i, n - i, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return posix_error(f->name, write ? "writing" : "reading", errno);
        if (got == 0 && list[i].iov_len > 0)
            return write
                       ? err_set(MPI_ERR_IO, "%s: the file system wrote nothing and gave no reason", f->name)
                       : 0;
        offset += got;
        *done += (size_t)got;
        counter_add(write ? &written : &read_in, (size_t)got);
        i = iovec_advance(list, i, n, (size_t)got);
    }
    return 0;
}

int posix_transfer(struct file *f, bool write, const void *buf, size_t len, int64_t offset, size_t *done)
{
    struct iovec one = {(void *)(uintptr_t)buf, len};
    return posix_transfer_list(f, write, &one, len > 0, offset, done);
}

/* Uses open-file-description locks where the kernel has them: locks of the process vanish when any
 * descriptor of the file is closed, even one that other code opened. */
int posix_lock_fd(struct file *f, int fd, short type, int64_t offset, int64_t len)
{
    int64_t waited_ns = 0;
    const bool polls = f->on_nfs && type != F_UNLCK; /* see nfs_pause_between_tries */
    for (;;) {
        struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = offset, .l_len = len};
        const int command = f->locks_posix ? (polls ? F_SETLK : F_SETLKW)
                            : polls        ? F_OFD_SETLK
                                           : F_OFD_SETLKW;
        if (fcntl(fd, command, &lock) == 0)
            return 0;
        if (errno == EINTR)
            continue;
        if (polls && (errno == EAGAIN || errno == EACCES)) {
            nfs_pause_between_tries(&waited_ns);
            continue;
        }
        if (errno == EINVAL && !f->locks_posix) {
            f->locks_posix = true;
            continue;
        }
        return err_set(MPI_ERR_IO,
                       "%s: locking failed: %s. Atomic mode, shared file pointers and data sieving need file "
                       "locks (fcntl) "
                       "on this file system: on NFS its lock daemon, on Lustre the mount option flock",
                       f->name, strerror(errno));
    }
}

int posix_lock(struct file *f, bool exclusive, int64_t offset, int64_t len)
{
    const int rc = nfs_check_locks(f);
    return rc ? rc : posix_lock_fd(f, f->fd, exclusive ? F_WRLCK : F_RDLCK, offset, len);
}

/* True if another program holds a conflicting lock. Locks of this library belong to open files: the kernel
 * reports process -1 for them. */
static bool lock_is_foreign(int fd, struct flock lock)
{
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid != -1;
}

int posix_guard_range(struct file *f, bool exclusive, int64_t offset, int64_t len, bool *held)
{
    const short type = exclusive || !file_reads(f) ? F_WRLCK : F_RDLCK;
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = offset, .l_len = len};
    *held = f->guards && fcntl(f->fd, F_OFD_SETLK, &lock) == 0;
    if (*held || !f->guards)
        return 0;
    if ((errno == EAGAIN || errno == EACCES) && lock_is_foreign(f->fd, lock))
        return 0;
    const int rc = posix_lock_fd(f, f->fd, type, offset, len);
    *held = rc == 0;
    /* Views that do not cover the file are written without read-modify-write: no lock is needed then. */
    return f->view.tiled_from == INT64_MAX ? 0 : rc;
}

void posix_unlock(struct file *f, int64_t offset, int64_t len)
{
    posix_lock_fd(f, f->fd, F_UNLCK, offset, len);
}
