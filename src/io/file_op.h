/* file_op.h: a file operation as a request. The request of an independent operation is complete when it is
 * created. A collective operation is a state machine that advances inside progress and does not wait.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_FILE_OP_H
#define FP_IO_FILE_OP_H

#include "io/access.h"
#include "net/net.h"
#include "p2p/request.h"

struct exchange;

enum io_stage { IO_BEGIN, IO_GATHERING, IO_EXCHANGING, IO_AGREEING, IO_DONE };

/* The fields of the record that describes a rank's access to the others. */
enum { RECORD_FROM, RECORD_TO, RECORD_LENGTH, RECORD_PIECES, RECORD_SIZE };
/* In RECORD_PIECES: file offsets of the pieces decrease, so that aggregators cannot access them. */
#define RECORD_UNSORTED (-1)

struct io_op {
    struct request base; /* must be the first member */
    struct net_hook hook;
    struct list link; /* in file->ops */
    struct file *file;
    struct access access;
    enum io_stage stage;
    bool blocking; /* the caller waits, so that the small collectives may block */
    bool running, linked;
    bool lost; /* a small collective failed */
    int tag;
    /* Small collectives of the operation: numbered when the operation begins, in the same order at all
     * ranks, and started when the operation needs them. */
    struct request *gather, *verdict;
    int64_t mine[RECORD_SIZE], *all; /* records of this rank and of all ranks */
    int64_t code;                    /* the error, encoded by agree_encode */
    struct exchange *exchange;
    int error;
};

/* Creates a complete request for an independent operation that has ended. */
int io_op_create_complete(struct access *a, int rc, struct request **out);

/* Begins a collective access. rc: the result of access_open; a rank whose access failed takes part without
 * data. */
int io_op_start(struct access *a, int rc, struct request **out);
/* Starts the operation and waits for it. *bytes: the number of bytes for the status. */
int io_op_run(struct access *a, int rc, MPI_Count *bytes);

/* Waits for operations whose requests the user has freed (MPI_Request_free). Returns MPI_ERR_FILE if there
 * are other operations. */
int io_op_wait_all(struct file *f);

/* Called when a request of the operation is complete: the operation continues later in this round of
 * progress. */
void io_op_ready(struct io_op *op);

/* Returns the file of a file operation's request; NULL for other requests. */
struct file *io_op_file(const struct request *r);

#endif
