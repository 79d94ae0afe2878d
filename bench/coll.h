/* coll.h: what the files that measure collectives share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BENCH_COLL_H
#define FP_BENCH_COLL_H

#include "bench.h"

/* One measurement: who, how much, from where to where. */
struct coll {
    struct bench *b;
    const struct coll_operation *kind;
    MPI_Comm comm;
    int rank, size;
    int count;    /* count of one call: bytes, or doubles for reductions */
    int *counts;  /* [size] `count` for every rank, for reduce_scatter */
    size_t bytes; /* length of one block, or of the vector */
    struct bench_buffer send, receive;
    char *in, *out;          /* their memory */
    MPI_Request *persistent; /* for each root, or one where there is none; NULL in the other forms */
};

struct coll_operation {
    const char *name;
    bool in_all, out_all; /* buffers hold a block for every rank */
    bool reduces;
    bool rooted;
    void (*call)(const struct coll *c, int root);
    void (*start)(const struct coll *c, int root, MPI_Request *request);
    void (*init)(const struct coll *c, int root, MPI_Request *request); /* NULL: the library has no MPI 4 */
    long (*check)(const struct coll *c,
                  unsigned seed); /* runs it, returns the number of wrong bytes; NULL: no data */
};

/* coll_kinds.c; NULL when there is none of that name. */
const struct coll_operation *coll_kind_find(const char *name);

/* coll_kinds.c: one operation in the form of --form, until it is complete. */
void coll_call(const struct coll *c, int root);

/* coll.c: buffers for one operation and size; false, without them, when it is too large. coll_close afterwards. */
bool coll_open(struct bench *b, const char *name, size_t bytes, struct coll *c);
void coll_close(struct coll *c);

/* Measures one figure. The statistics are valid on rank 0. False, with a note, if the size is too large. */
bool coll_measure(struct bench *b, const char *name, size_t *bytes, struct bench_stats *s);

#endif
