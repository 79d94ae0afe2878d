/* posix.h: system calls on a file, repeated until everything is done or something is wrong, and locks on parts of it. An
 * error names the file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_POSIX_H
#define FP_IO_POSIX_H

#include <sys/uio.h>

#include "io/file.h"

/* An errno as an MPI error class, with a sentence: "NAME: DOING failed: TEXT". */
int posix_error(const char *name, const char *doing, int error);

/* Writes all `len` bytes; *done: how many are in the file, also when it fails. */
int posix_write(struct file *f, const void *buf, size_t len, int64_t offset, size_t *done);
/* Reads `len` bytes; *done is less than `len` only at the end of the file. */
int posix_read(struct file *f, void *buf, size_t len, int64_t offset, size_t *done);
/* The same for a list of pieces, which is modified. */
int posix_writev(struct file *f, struct iovec *list, int n, int64_t offset, size_t *done);
int posix_readv(struct file *f, struct iovec *list, int n, int64_t offset, size_t *done);

/* A lock on bytes [offset, offset + len) against other processes: waits. exclusive: nobody else reads under a lock. A length of 0 reaches
 * to the end of the file, as fcntl has it. */
int posix_lock(struct file *f, bool exclusive, int64_t offset, int64_t len);
/* The lock that a write needs if f->guards is set: exclusive for a read-modify-write, shared for a plain write. Does
 * not wait for locks held by programs outside of this job; *held is false then, and where no lock is needed. */
int posix_guard_range(struct file *f, bool exclusive, int64_t offset, int64_t len, bool *held);
void posix_unlock(struct file *f, int64_t offset, int64_t len);
/* The same on another descriptor in the folder of f: F_RDLCK, F_WRLCK or F_UNLCK. */
int posix_lock_fd(struct file *f, int fd, short type, int64_t offset, int64_t len);

#endif
