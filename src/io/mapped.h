/* mapped.h: writes through a mapping of the file, for two reasons. First, small pieces with small holes
 * would each take a system call; through a mapping the pieces are copied to their offsets, and the holes
 * are not written. Second, on tmpfs only one process at a time can execute write(2) for a file: while one
 * rank of a node does (it has the turn), other ranks copy into a mapping in parallel instead of waiting,
 * although a copy takes more processor time.
 *
 * On a disk's file system ranks take turns, too, without mappings: each writes a batch of pieces at a
 * time, because ranks that compete for the kernel's lock of the file at every piece are slower.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_MAPPED_H
#define FP_IO_MAPPED_H

#include "io/bus.h"
#include "io/file.h"

/* Bytes of the file in one mapping if ranks do not take turns. */
#define MAPPED_SPAN (256 << 10)
/* If ranks take turns: bytes of data in one turn or one mapping, and the range of the file in which they
 * lie. A turn is long enough to amortise a mapping, and its data fits in the processor's cache, which
 * contains the pages that were just cleared. */
#define TURN_BYTES (256 << 10)
#define TURN_SPAN  (4 << 20)

struct mapped {
    char *base;             /* address of byte `from` of the file */
    struct bus_watch watch; /* the mapping, which begins at the page of `base` */
};

/* Decides at open whether mappings may be used: only on file systems of this machine whose pages all
 * processes share. */
void mapped_probe(struct file *f);
void mapped_close_watch(struct file *f);
/* Maps [from, to) for writing and makes the file at least `reach` long, which must be the end of bytes that
 * the caller is about to write. Returns false if it fails: system calls then report the error. */
bool mapped_open(struct mapped *m, struct file *f, int64_t from, int64_t to, int64_t reach);
/* Populates the pages of `len` bytes, `skip` bytes behind `from`. Returns false if it fails. */
bool mapped_prefault(const struct mapped *m, uint64_t skip, uint64_t len);
/* Unmaps. Until then, prefaulted pages may be accessed between bus_watch_begin and bus_watch_end. */
void mapped_close(struct mapped *m);
/* Called after the last batch: not every file system updates the modification time for stores through a
 * mapping. The call also waits for the file's lock in the kernel, which mapped_open requires. */
void mapped_update_times(struct file *f);

/* Take the node's turn to write: without waiting, or (mapped_turn_wait) after a limited wait. */
bool mapped_try_take_turn(struct file *f);
bool mapped_turn_wait(struct file *f);
void mapped_release_turn(struct file *f);

#endif
