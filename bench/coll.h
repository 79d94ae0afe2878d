/* coll.h: declarations shared by the files that measure collectives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BENCH_COLL_H
#define FP_BENCH_COLL_H

#include "bench.h"

/* One measurement: communicator, operation, sizes and buffers. */
struct coll {
    struct bench *b;
    const struct coll_operation *kind;
    MPI_Comm comm;
    int rank, size;
    int count;    /* count argument of a call: bytes, or doubles for reductions */
    int *counts;  /* [size] `count` for every rank, for MPI_Reduce_scatter */
    size_t bytes; /* bytes of one block, or of the vector */
    struct bench_buffer send, receive;
    char *in, *out;          /* memory of `send` and `receive` */
    MPI_Request *persistent; /* one request per root, or one if there is no root; NULL unless --persistent */
};

struct coll_operation {
    const char *name;
    bool in_all, out_all; /* buffers hold a block for every rank */
    bool reduces;
    bool rooted;
    void (*call)(const struct coll *c, int root);
    void (*start)(const struct coll *c, int root, MPI_Request *request);
    /* NULL: the MPI library has no persistent collectives (MPI 4) */
    void (*init)(const struct coll *c, int root, MPI_Request *request);
    long (*check)(const struct coll *c,
                  /* calls the operation and returns the number of wrong bytes; NULL: it moves no data */
                  unsigned seed);
};

/* Finds an operation by name; NULL if it does not exist (coll_kinds.c). */
const struct coll_operation *coll_kind_find(const char *name);

/* Calls the operation in the selected form and completes it (coll_kinds.c). */
void coll_call(const struct coll *c, int root);

/* Allocates the buffers for an operation and size; false, without buffers, if the size is too large.
 * coll_close frees them (coll.c). */
bool coll_open(struct bench *b, const char *name, size_t bytes, struct coll *c);
void coll_close(struct coll *c);

/* Measures one operation and size. *s is valid on rank 0. False, with a note, if the size is too large. */
bool coll_measure(struct bench *b, const char *name, size_t *bytes, struct bench_stats *s);

#endif
