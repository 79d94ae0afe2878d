/* shared_help.h: a rank whose memory is read helps the reader: it writes pieces of its contribution into the reader's
 * memory meanwhile (claims.h says which), so that both processors copy. One reader a contribution.
 *
 * The reader says in its block where the data is to go, and for which step and call: nobody writes for another one. Either
 * side may decide not to take part: then the reader reads everything, as without help.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHARED_HELP_H
#define FP_COLL_SHARED_HELP_H

#include "coll/shared.h"

#define HELP_MIN \
    32768 /* bytes; shorter contributions are read in less time than it takes to share the work */

/* A part of a contribution: bytes at .. at + len - 1. */
typedef void help_use(void *arg, size_t at, size_t len);

/* What an owner helps with. In a reduction it reads the reader's own elements into `scratch` (SHARED_SCRATCH bytes),
 * combines them there with its own by `combine`, and writes the result. Else it writes what it has. */
struct help {
    int reader;
    uint64_t step; /* the first of the call */
    const char *from;
    size_t skip; /* where it goes, behind what the reader names */
    size_t bytes;
    char *scratch;
    help_use *combine; /* may be NULL */
    void *arg;
};

/* The owner: before it posts the step; then, after the post, moves what it can get hold of. Returns when nothing is left
 * to claim, or the reader does not want help. */
void shared_help_begin(struct shared *b, size_t bytes);
void shared_help(struct shared *b, const struct help *h);

/* The reader: where contributions to this step may be written, and its own contribution to a reduction. */
void shared_help_accept(struct shared *b, uint64_t step, void *to, const void *mine);
/* After rank r has posted the step, BY_HELP: gets its contribution, at `from` in its memory. `use` (may be NULL) hears of
 * every part that was read here. */
int shared_help_take(struct shared *b, int r, uint64_t from, char *to, size_t bytes, help_use *use,
                     void *arg);
/* ... or gives up, because a rank turned out to be in another call: when this returns nobody writes any more. */
void shared_help_refuse(struct shared *b, uint64_t step);

#endif
