/* mismatch_query.h: finds collective calls that do not match although no message of them arrives: each rank
 * waits for a message of another one. A rank that has waited in a collective call for a second, and again
 * after two, four, eight seconds, sends a query with its call to the ranks whose messages it waits for. The
 * receiver of a query compares it with its own call of that number. It ends the job if they differ, if it is
 * in MPI_Finalize without having made the call, or if it waits itself for a message of the sender in a call
 * that the sender has not made. Otherwise the receiver is only late.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_MISMATCH_QUERY_H
#define FP_COLL_MISMATCH_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/coll.h"

struct proc;

/* Payload of a query. The frame's header has the envelope of the call's messages. */
struct call_query {
    uint32_t calls[COLL_FORMS]; /* calls that the sender has made on the communicator, by form */
    uint32_t blocked;           /* the sender makes no other call before the call of the query ends */
};

struct query_state {
    uint64_t begun, next;    /* ns: start of the present wait; time of the next queries */
    int source, tag;         /* sender and tag of `query`, valid if query.blocked */
    struct call_query query; /* the last query received for a call that this rank has not made */
};

/* Installs the checks that a rank makes before it sleeps. */
void query_open(struct proc *p);

#endif
