/* mapped.h: writes through a mapping of the file. A view of small pieces with small holes would cost a system call for
 * each piece; through a mapping the pieces are copied where they belong, and the holes are not touched.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_MAPPED_H
#define FP_IO_MAPPED_H

#include "io/file.h"

/* Bytes of the file that are mapped at a time. */
#define MAPPED_SPAN (256 << 10)

struct mapped {
    char *base; /* where byte `from` of the file is */
    void *at;
    size_t length;
};

/* Decides at open whether mappings may be used: only on file systems of this machine whose pages all processes share. */
void mapped_probe(struct file *f);
/* Maps [from, to) for writing, with every page present, and makes the file at least that long. False: use system calls,
 * which also report why. */
bool mapped_open(struct mapped *m, struct file *f, int64_t from, int64_t to);
void mapped_close(struct mapped *m);
/* After the last window: a mapping does not change the time of modification on every file system. */
void mapped_touch(struct file *f);

#endif
