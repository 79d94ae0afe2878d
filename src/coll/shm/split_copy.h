/* split_copy.h: split copy: while a reader reads from the memory of the owner, the owner writes other pieces
 * into the reader's memory (split_pieces.h chooses the pieces), so that both processors copy. Each
 * contribution has one reader.
 *
 * The reader publishes the destination address with step and call in its part of the shared block, so that an
 * owner writes only for that call. If either side does not take part, the reader reads all data.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHM_SPLIT_COPY_H
#define FP_COLL_SHM_SPLIT_COPY_H

#include "coll/shm/block.h"

#define SPLIT_COPY_MIN \
    32768 /* minimum bytes; for shorter contributions sharing the work takes longer than reading */

/* Callback for a part of a contribution: bytes [at, at + len). */
typedef void split_copy_part(void *arg, size_t at, size_t len);

/* Arguments of the owner. In a reduction (`combine` set) the owner reads the reader's elements into
 * `scratch` (SHARED_SCRATCH bytes), combines them with its own, and writes the result. Otherwise it writes
 * its contribution. */
struct split_copy {
    int reader;
    uint64_t step; /* the first step of the call */
    const char *from;
    size_t skip; /* offset of the contribution in the memory that the reader has published */
    size_t bytes;
    char *scratch;
    split_copy_part *combine; /* may be NULL */
    void *arg;
};

/* Called by the owner: split_copy_begin() before it posts the step; split_copy_write() after the post. The
 * latter returns when no pieces are left, or if the reader accepts no help. */
void split_copy_begin(struct shared *b, size_t bytes);
void split_copy_write(struct shared *b, const struct split_copy *h);

/* Called by the reader: publishes the memory `to` into which owners may write in this step, and its own
 * contribution to a reduction (`mine`). */
void split_copy_accept(struct shared *b, uint64_t step, void *to, const void *mine);
/* Called by the reader after rank r has posted the step with METHOD_SPLIT: copies its contribution, at
 * `from` in its memory, to `to`. `use` (may be NULL) is called for every part that this rank has read. */
int split_copy_read(struct shared *b, int r, uint64_t from, char *to, size_t bytes, split_copy_part *use,
                    void *arg);
/* Called by the reader if a rank is in a different call: cancels the copies. No rank writes afterwards. */
void split_copy_cancel(struct shared *b, uint64_t step);

#endif
