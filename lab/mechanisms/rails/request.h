/* request.h: the sender's half of a reservation [Coll01 3.1, algorithm 2]: requests all free rails at once,
 * waits for the answers, selects as many of the granted rails as the striping ratio gives, and returns the
 * others. A pure state machine, one for each message to be sent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_MECHANISMS_RAILS_REQUEST_H
#define FP_LAB_MECHANISMS_RAILS_REQUEST_H

#include "lab/mechanisms/rails/alloc.h"

struct request {
    uint32_t number;           /* number of this request; 0: no request */
    uint32_t waiting, granted; /* rails without an answer yet; rails that answered CTS */
};

enum request_verdict {
    REQUEST_WAIT,   /* more answers are expected */
    REQUEST_SEND,   /* send over the rails in `send` */
    REQUEST_RETRY,  /* no rail was granted: allocate again */
    REQUEST_IGNORED /* the answer belongs to an earlier request */
};

struct request_out {
    enum request_verdict verdict;
    uint32_t send;  /* granted rails that the message uses */
    uint32_t abort; /* rails that get a local ABORT: granted but not needed, or not answered in time */
};

/* Begins a request for the rails of the set, which is not empty; the caller then calls reserve_local_rts
 * with this number for each rail. */
void request_begin(struct request *r, uint32_t number, uint32_t rails);

struct request_out request_answer(struct request *r, struct alloc *a, uint32_t number, unsigned rail,
                                  bool granted);

/* Ends a request after a timeout: uses the granted rails and gives up the rails that have not answered. */
struct request_out request_timeout(struct request *r, struct alloc *a);

#endif
