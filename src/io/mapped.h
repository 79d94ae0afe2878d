/* mapped.h: writes through a mapping of the file, for two reasons. A view of small pieces with small holes would cost a system
 * call for each piece; through a mapping the pieces are copied where they belong, and the holes are not touched. And on
 * tmpfs one process at a time can be inside write(2) for a file: while one rank of a node is (it has the turn), others copy into
 * a mapping instead of waiting, which costs more of their time but is done at the same time.
 *
 * On a disk's file system the turn alone gains something: ranks that meet at the kernel's lock of the file for every piece lose time
 * there. They write a batch of pieces each in turn.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_MAPPED_H
#define FP_IO_MAPPED_H

#include "io/bus.h"
#include "io/file.h"

/* Bytes of the file that are mapped at a time. */
#define MAPPED_SPAN (256 << 10)
/* The same where ranks take turns: bytes of data that are written in one turn or through one mapping, and the stretch that they may
 * lie in. A turn is long enough to pay for a mapping, and the data fits a processor's cache, where its pages were just cleared. */
#define TURN_BYTES (256 << 10)
#define TURN_SPAN  (4 << 20)

struct mapped {
    char *base; /* where byte `from` of the file is */
    void *at;
    size_t length;
    struct bus_watch watch;
};

/* Decides at open whether mappings may be used: only on file systems of this machine whose pages all processes share. */
void mapped_probe(struct file *f);
void mapped_close_watch(struct file *f);
/* Maps [from, to) for writing and makes the file at least `reach` long, which must be the end of bytes that the caller is
 * about to write. False: use system calls, which also report why. */
bool mapped_open(struct mapped *m, struct file *f, int64_t from, int64_t to, int64_t reach);
/* Makes the pages of `len` bytes present, `skip` bytes behind `from`. False as above. */
bool mapped_prefault(const struct mapped *m, uint64_t skip, uint64_t len);
/* Pages that mapped_prefault made present may be accessed between begin and end. mapped_end returns false if the file was
 * truncated meanwhile; what was stored is lost then. */
void mapped_begin(struct mapped *m);
bool mapped_end(struct mapped *m);
void mapped_close(struct mapped *m);
/* Called after the last window. Not every file system updates the modification time for stores through a mapping. The
 * call also waits for the file's lock in the kernel, which mapped_open relies on. */
void mapped_update_times(struct file *f);

/* Tries to take the node's turn to write; the second function waits for it, for a limited time. */
bool mapped_try_take_turn(struct file *f);
bool mapped_turn_wait(struct file *f);
void mapped_release_turn(struct file *f);

#endif
