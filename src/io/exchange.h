/* exchange.h: two-phase access [Thakur99]. The range of the file that the ranks access is divided into one
 * domain for each aggregator, and a domain into windows of cb_buffer_size, one for each round. In a
 * striped file a window is one stripe, and stripes are assigned to the aggregators in turn, so that each
 * server of the file system serves the same aggregators. In a round every rank sends each aggregator a
 * list of its pieces of the aggregator's window and sends (or, for a read, receives) the data; the
 * aggregator writes or reads the window.
 *
 * Two rounds are active at a time: messages of the second one are transferred while the window of the
 * first one is written.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_EXCHANGE_H
#define FP_IO_EXCHANGE_H

#include "io/aggregators.h"

#define SLOTS 2 /* active rounds */

/* Messages whose requests are not complete. */
struct flight {
    struct exchange *exchange;
    int pending;
};

/* The first message of a rank to an aggregator in a round. */
struct head {
    int64_t pieces, bytes;
    int64_t first; /* offset in the window of the piece, if there is only one */
};
/* An aggregator's answer to a reader. */
struct answer {
    int64_t code; /* the error, encoded by agree_encode() */
    int64_t end;  /* offset at which the file ended; INT64_MAX: it did not end in the window */
};
/* A piece of a window. Windows have at most 2 GiB. */
struct piece {
    uint32_t at, len; /* offset in the window, length */
};

/* The part of a round that concerns one rank and one aggregator; each of the two has such a record. */
struct part {
    struct head head;
    struct answer answer;
    struct piece *pieces; /* allocated */
    uint64_t start;       /* position of the data in the rank's stream; unused by the aggregator */
    char *data;           /* allocated; NULL: the data is in the user's memory or in the window */
    bool active;          /* the rank accesses the aggregator's window */
};

/* A round at a rank: a part for each aggregator. */
struct client {
    bool busy;
    struct flight flight;
    struct part *parts;
};

/* A round at an aggregator: a part for each rank. */
struct server {
    bool busy, draining; /* draining: the window was written or read, and answers are being sent */
    int round;
    struct flight heads, bodies; /* bodies: lists of pieces, data and answers */
    struct part *parts;
};

/* Memory of an aggregator, which the file retains for the next operation. */
struct io_buffers {
    size_t size; /* bytes of each window */
    char *window[SLOTS];
    uint64_t *filled; /* a bit for each byte of a window */
};

struct exchange {
    struct io_op *op;
    struct file *file;
    bool write;
    int aggregators;
    int me;            /* index of this rank among the aggregators; -1: not an aggregator */
    int64_t low, high; /* range of the file that the ranks access */
    int64_t domain;    /* bytes of a domain; 0: windows are assigned to the aggregators in turn */
    int64_t window;    /* bytes of a window */
    int rounds;
    int sent;           /* rounds in which this rank has sent its heads */
    int requested;      /* rounds in which this aggregator has posted receives for heads */
    int answered;       /* rounds in which this aggregator has posted receives for bodies */
    int done;           /* rounds in which this aggregator has written or read its window */
    uint64_t *position; /* by aggregator: position in this rank's stream of the next byte */
    struct client clients[SLOTS];
    struct server servers[SLOTS];
    struct io_buffers *buffers;
    int error;   /* first error of a message or of a window of this aggregator */
    int64_t end; /* a read: smallest end of the file that an aggregator reported */
};

/* The window of an aggregator in a round; empty if *from >= *to. */
void exchange_window(const struct exchange *x, int aggregator, int round, int64_t *from, int64_t *to);
/* The position in this rank's data stream of the first byte whose file offset is at least `from`. */
uint64_t exchange_position(const struct exchange *x, int64_t from);
/* True if the rank's record contains bytes in [from, to). */
bool exchange_needs_range(const struct exchange *x, int rank, int64_t from, int64_t to);

enum exchange_message { MESSAGE_HEAD, MESSAGE_PIECES, MESSAGE_DATA, MESSAGE_ANSWER, MESSAGE_ANSWER_DATA };
void exchange_send(struct exchange *x, struct flight *f, int rank, enum exchange_message kind,
                   const void *data, uint64_t len);
void exchange_receive(struct exchange *x, struct flight *f, int rank, enum exchange_message kind, void *data,
                      uint64_t room);
void exchange_record_error(struct exchange *x, int rc);

void client_begin(struct exchange *x, struct client *c, int round);
void client_finish(struct exchange *x, struct client *c);
void part_free(struct part *p);

void server_receive_heads(struct exchange *x, struct server *s, int round);
void server_receive_bodies(struct exchange *x, struct server *s);
void server_access_window(struct exchange *x, struct server *s);
void server_finish(struct exchange *x, struct server *s);

#endif
