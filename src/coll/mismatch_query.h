/* mismatch_query.h: finds mismatched collective calls in which no message arrives, because each rank waits
 * for a message of another one. A rank that has waited in a collective call for a second, and again after
 * two, four, eight seconds, sends a query with its call to the ranks whose messages it waits for. The
 * receiver of a query compares it with its own call of that number. It ends the job if they differ, if it is
 * in MPI_Finalize without having made the call, or if it waits itself for a message of the sender in a call
 * that the sender has not made. Otherwise the receiver may still make the call.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_MISMATCH_QUERY_H
#define FP_COLL_MISMATCH_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/coll.h"

struct proc;

/* Payload of a query. The frame header contains the envelope of the call's messages. */
struct call_query {
    uint32_t calls[COLL_FORMS]; /* calls that the sender has made on the communicator, by form */
    uint32_t blocked;           /* the sender makes no other call before the call of the query ends */
};

struct query_state {
    uint64_t begun, next;    /* times in ns: start of the current wait; next round of queries */
    int source, tag;         /* sender and tag of `query`, valid if query.blocked */
    struct call_query query; /* the last query received for a call that this rank has not made */
};

/* Installs the checks that a rank makes before it sleeps. */
void query_open(struct proc *p);

#endif
