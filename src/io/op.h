/* op.h: an operation on a file as a request. An independent one is complete when it is made; a collective one
 * is a small state machine that advances inside progress, so nothing here waits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_OP_H
#define FP_IO_OP_H

#include "io/access.h"
#include "net/net.h"
#include "p2p/request.h"

struct exchange;

enum io_stage { IO_BEGIN, IO_GATHERING, IO_EXCHANGING, IO_JUDGING, IO_DONE };

/* The fields of the record that describes a rank's access to the others. */
enum { RECORD_FROM, RECORD_TO, RECORD_LENGTH, RECORD_PIECES, RECORD_SIZE };
#define RECORD_UNSORTED \
    (-1) /* pieces that do not follow each other in the file: only the rank itself can move them */

struct io_op {
    struct request base; /* first */
    struct net_hook hook;
    struct list link; /* in file->ops */
    struct file *file;
    struct access access;
    enum io_stage stage;
    bool blocking; /* the caller waits: small collectives may block too */
    bool running, linked;
    bool lost; /* a small collective failed */
    int tag;
    /* Numbered when the operation begins, in the order that all ranks have, and started when it gets there. */
    struct request *gather, *verdict;
    int64_t mine[RECORD_SIZE], *all; /* records: by rank */
    int64_t code;                    /* the error, as agree.h has it */
    struct exchange *exchange;
    int error;
};

/* Makes a complete request of an independent operation that has ended. */
int io_op_done(struct access *a, int rc, struct request **out);

/* Begins a collective access; `rc` is what access_open gave: a rank whose access failed takes part without data. */
int io_op_start(struct access *a, int rc, struct request **out);
/* Starts the operation and waits for it. *bytes as in access_close. */
int io_op_run(struct access *a, int rc, MPI_Count *bytes);

/* Waits for operations whose requests were given up (MPI_Request_free). MPI_ERR_FILE when there are others. */
int io_op_wait_all(struct file *f);

/* A request that the operation waits for is complete: the operation continues later in this round of progress. */
void io_op_ready(struct io_op *op);

/* The file behind a request of this kind, else NULL. */
struct file *io_op_file(const struct request *r);

#endif
