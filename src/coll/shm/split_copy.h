/* split_copy.h: a rank whose memory is read helps the reader: the rank writes pieces of its contribution into
 * the reader's memory meanwhile (split_pieces.h chooses the pieces), so that both processors copy. One reader
 * a contribution.
 *
 * The reader announces in its block the destination of the data, with step and call, so that an owner writes
 * for that call only. Either side may decide not to take part: then the reader reads everything, as without
 * help.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHM_SPLIT_COPY_H
#define FP_COLL_SHM_SPLIT_COPY_H

#include "coll/shm/block.h"

#define SPLIT_COPY_MIN \
    32768 /* bytes; shorter contributions are read in less time than it takes to share the work */

/* Called for a part of a contribution: bytes at .. at + len - 1. */
typedef void split_copy_part(void *arg, size_t at, size_t len);

/* The owner's part of the copy. In a reduction the owner reads the reader's elements into `scratch`
 * (SHARED_SCRATCH bytes), combines its own with them by `combine`, and writes the result. Else the owner
 * writes its contribution. */
struct split_copy {
    int reader;
    uint64_t step; /* the first step of the call */
    const char *from;
    size_t skip; /* offset of the contribution in the memory that the reader accepts it into */
    size_t bytes;
    char *scratch;
    split_copy_part *combine; /* may be NULL */
    void *arg;
};

/* The owner: begin before it posts the step; then, after the post, copies what it can claim. Returns when
 * nothing is left to claim, or the reader accepts no help. */
void split_copy_begin(struct shared *b, size_t bytes);
void split_copy_write(struct shared *b, const struct split_copy *h);

/* The reader: sets the memory into which contributions to this step may be written, and its own contribution
 * to a reduction. */
void split_copy_accept(struct shared *b, uint64_t step, void *to, const void *mine);
/* After rank r has posted the step with METHOD_SPLIT: gets its contribution, at `from` in its memory. `use`
 * (may be NULL) is called for every part that was read here. */
int split_copy_read(struct shared *b, int r, uint64_t from, char *to, size_t bytes, split_copy_part *use,
                    void *arg);
/* Ends the copies without reading, because a rank is in another call: after the return no rank writes any
 * more. */
void split_copy_refuse(struct shared *b, uint64_t step);

#endif
