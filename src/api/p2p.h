/* p2p.h: declarations that the point-to-point files of the API share. A call with MPI_PROC_NULL starts no
 * operation and returns a complete request.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_P2P_H
#define FP_API_P2P_H

#include <sched.h>

#include "obj/comm.h"
#include "obj/handle.h"
#include "p2p/bsend.h"

enum p2p_kind { P2P_SEND, P2P_SSEND, P2P_RSEND, P2P_BSEND, P2P_RECV };

struct p2p_call {
    enum p2p_kind kind;
    void *buf;
    MPI_Count count;
    struct dtype *type;
    int rank, tag;
    struct comm *comm;
};

/* Starts the call; the caller owns the request and may return it to the user. */
int p2p_call_start(const struct p2p_call *call, struct request **out);

/* Sets the communicator of a request, for its error handler, unless it is one of the shared requests. */
static inline void request_bind(struct request *r, struct comm *c)
{
    if (!r->shared && r->comm == NULL) {
        comm_retain(c);
        r->comm = c;
    }
}

/* Called when a test or probe found nothing. Lets other threads take the lock or, if ranks share processors,
 * lets another rank run: the program may be waiting for that rank. */
static inline void api_yield_after_failed_test(struct proc *p)
{
    if (unlikely(p->threaded))
        biglock_count_empty_poll(&p->lock);
    else if (unlikely(p->net->oversubscribed))
        sched_yield();
}

#endif
