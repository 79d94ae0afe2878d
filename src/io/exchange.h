/* exchange.h: two-phase access [Thakur99]. The part of the file that ranks want is cut into one domain for each
 * aggregator, and a domain into windows of cb_buffer_size, one a round. Of a file in stripes aggregators have windows of
 * whole stripes in turn, so that a server of the file system always hears from the same of them. In a round every rank tells each aggregator which
 * pieces of its window it wants and sends the data (or, reading, gets it), and the aggregator writes or reads the window.
 *
 * Two rounds are under way at a time: messages of the next one move while a window is written.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_EXCHANGE_H
#define FP_IO_EXCHANGE_H

#include "io/collective.h"

#define SLOTS 2

/* Messages that are under way. */
struct flight {
    struct exchange *exchange;
    int pending;
};

/* The first message of a rank to an aggregator in a round. */
struct head {
    int64_t pieces, bytes;
    int64_t first; /* where the only piece begins, if it is one */
};
/* An aggregator's answer to a reader. */
struct answer {
    int64_t code; /* the error, as agree.h has it */
    int64_t end;  /* the file ended here; INT64_MAX when it did not */
};
/* A piece of a window, from its start. Windows have at most 2 GiB. */
struct piece {
    uint32_t at, len;
};

/* What one rank and one aggregator exchange in a round; both sides have one. */
struct part {
    struct head head;
    struct answer answer;
    struct piece *pieces; /* allocated */
    uint64_t start;       /* rank: of the data in the stream */
    char *data;           /* NULL when it is the user's memory or the window itself */
    bool active;
};

/* A round as a rank sees it: a part for each aggregator. */
struct client {
    bool busy;
    struct flight flight;
    struct part *parts;
};

/* A round as an aggregator sees it: a part for each rank. */
struct server {
    bool busy, draining; /* draining: the window was moved, answers are on their way */
    int round;
    struct flight heads, bodies;
    struct part *parts;
};

/* An aggregator's memory, kept from one operation to the next. */
struct io_buffers {
    size_t size;
    char *window[SLOTS];
    uint64_t *filled; /* a bit for each byte of a window */
};

struct exchange {
    struct io_op *op;
    struct file *file;
    bool write;
    int aggregators;
    int me;                            /* as an aggregator, -1 when I am none */
    int64_t low, high, domain, window; /* domain: 0 when windows go round the aggregators */
    int rounds;
    int sent, asked, answered, done; /* rounds: my requests, heads awaited, bodies awaited, windows moved */
    uint64_t *position;              /* in my stream, for each aggregator */
    struct client clients[SLOTS];
    struct server servers[SLOTS];
    struct io_buffers *buffers;
    int error;   /* of messages and of my windows */
    int64_t end; /* of the file, as readers learned */
};

/* The window of an aggregator in a round; empty when from >= to. */
void exchange_window(const struct exchange *x, int aggregator, int round, int64_t *from, int64_t *to);
/* The position in this rank's data stream of the first byte whose file offset is at least `from`. */
uint64_t exchange_position(const struct exchange *x, int64_t from);
/* Whether the rank accesses bytes in [from, to), according to its record. */
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
void server_move(struct exchange *x, struct server *s);
void server_finish(struct exchange *x, struct server *s);

#endif
