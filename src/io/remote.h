/* remote.h: files of an NFS server. A client keeps what it read and what it is about to write for itself, whole pages of it, until
 * somebody locks the file: a page that two nodes write parts of would lose one of them. So writes take a lock there
 * (f->guards), and MPI_File_sync and the like drop what the client keeps.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_REMOTE_H
#define FP_IO_REMOTE_H

#include "io/file.h"

/* After opening: finds out whether the file is on NFS and whether locks there hold between nodes. */
void remote_probe(struct file *f);

/* After this call reads return what other nodes have written and flushed. Does nothing on other file systems. */
void remote_refresh(struct file *f);

/* Waits before the next attempt to get a lock that another process holds, and adds the wait to *waited_ns. */
void remote_pause_between_tries(int64_t *waited_ns);

/* True if locking the whole file is faster than locking each piece of this size. */
bool remote_locks_whole_file(const struct file *f, uint64_t piece);

/* An error where ranks of several nodes need a lock that each node would keep for itself. */
int remote_check_locks(const struct file *f);

#endif
