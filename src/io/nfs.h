/* nfs.h: files of an NFS server. A client caches whole pages that were read or written until the file
 * is locked: if two nodes write parts of a page, the data of one could be lost. Therefore writes acquire a
 * lock (f->guards), and MPI_File_sync and similar calls invalidate the client's cache.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_NFS_H
#define FP_IO_NFS_H

#include "io/file.h"

/* Called after opening: detects whether the file is on NFS and whether locks are effective between nodes. */
void nfs_probe(struct file *f);

/* Invalidates the client's cache: later reads return data that other nodes have written and flushed. Does
 * nothing on other file systems. */
void nfs_refresh(struct file *f);

/* Waits before the next attempt to get a lock that another process holds, and adds the wait to *waited_ns. */
void nfs_pause_between_tries(int64_t *waited_ns);

/* True if locking the whole file is faster than locking each piece of this size. */
bool nfs_locks_whole_file(const struct file *f, uint64_t piece);

/* An error if ranks of several nodes need a lock but locks are effective on one node only. */
int nfs_check_locks(const struct file *f);

#endif
