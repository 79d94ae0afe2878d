/* posix.h: system calls on a file, repeated until all bytes are transferred or one fails, and locks on
 * ranges of the file. An error names the file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_POSIX_H
#define FP_IO_POSIX_H

#include <sys/uio.h>

#include "io/file.h"

/* Returns the MPI error class of an errno, and sets the message "NAME: DOING failed: TEXT". */
int posix_error(const char *name, const char *doing, int error);

/* Writes or reads `len` bytes. *done: bytes transferred, also on failure; a read returns fewer than `len`
 * only at the end of the file. */
int posix_transfer(struct file *f, bool write, const void *buf, size_t len, int64_t offset, size_t *done);
/* posix_transfer for a list of pieces, which is modified. */
int posix_transfer_list(struct file *f, bool write, struct iovec *list, int n, int64_t offset, size_t *done);

/* Waits for a lock on bytes [offset, offset + len) against other processes. exclusive: against readers,
 * too. A length of 0 locks to the end of the file, as in fcntl. */
int posix_lock(struct file *f, bool exclusive, int64_t offset, int64_t len);
/* Acquires the lock that a write needs if f->guards is set: exclusive for a read-modify-write, shared for
 * other writes. Does not wait for locks of programs outside of this job. *held: the lock was acquired. */
int posix_guard_range(struct file *f, bool exclusive, int64_t offset, int64_t len, bool *held);
void posix_unlock(struct file *f, int64_t offset, int64_t len);
/* Locks a range of another file in the folder of `f`. type: F_RDLCK, F_WRLCK or F_UNLCK. */
int posix_lock_fd(struct file *f, int fd, short type, int64_t offset, int64_t len);

#endif
