/* request.h: the sender's half of a reservation [Coll01 3.1, algorithm 2]: requests all free rails at once, waits for the
 * answers, takes as many of the granted rails as the striping ratio gives, and gives the others back. A pure state machine,
 * one for each message that is to be sent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_MECHANISMS_RAILS_REQUEST_H
#define FP_LAB_MECHANISMS_RAILS_REQUEST_H

#include "lab/mechanisms/rails/alloc.h"

struct request {
    uint32_t number;           /* of this round; 0: no request */
    uint32_t waiting, granted; /* rails that have not answered; rails that said CTS */
};

enum request_verdict {
    REQUEST_WAIT,  /* for more answers */
    REQUEST_SEND,  /* over the rails in `send` */
    REQUEST_RETRY, /* nobody granted: ask the allocation again */
    REQUEST_STRAY  /* an answer that nobody waits for */
};

struct request_out {
    enum request_verdict verdict;
    uint32_t send;  /* rails that were granted and are taken */
    uint32_t abort; /* rails that get a local ABORT: granted and not needed, or not answered in time */
};

/* Requests the rails of the set, which is not empty; the caller gives each a local RTS with this number. */
void request_begin(struct request *r, uint32_t number, uint32_t rails);

struct request_out request_answer(struct request *r, struct alloc *a, uint32_t number, unsigned rail,
                                  bool granted);

/* The timeout: rails that have not answered are given up. */
struct request_out request_timeout(struct request *r, struct alloc *a);

#endif
