/* request.h: operations that complete later: sends, receives, collectives, generalized requests. One
 * structure with a small table of operations; wait and test do not depend on the kind of request.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_REQUEST_H
#define FP_P2P_REQUEST_H

#include <mpi.h>
#include <stdatomic.h>

#include "base/objmem.h"
#include "dt/dtype.h"
#include "net/net.h"

struct request;
struct comm;

/* Operations of a kind of request. Every entry may be NULL. */
struct request_ops {
    const char *name;                /* for messages: "send", "iallreduce" */
    int (*start)(struct request *r); /* persistent: MPI_Start */
    int (*cancel)(struct request *r);
    int (*query)(struct request *r, MPI_Status *); /* generalized: fills the status at completion */
    /* requests of which this one consists */
    struct request *const *(*parts)(const struct request *r, int *count);
    int (*forget)(struct request *r); /* generalized: calls the user's free function, once, before release */
    void (*release)(struct request *r); /* frees the request and what belongs to it */
};

struct request {
    struct object obj;    /* MAGIC_REQUEST; must be the first member */
    _Atomic int complete; /* 1 when done, failed or cancelled; the only field other threads poll */
    int error;            /* MPI error class of the operation */
    const struct request_ops *ops;
    struct p2p *p2p;
    /* communicator whose error handler is called, retained by the API layer; NULL: internal request */
    struct comm *comm;
    bool persistent;
    bool active; /* persistent: started and not yet waited for. Others: always true */
    bool freed;  /* MPI_Request_free was called: the request is released when it completes */
    bool cancelled;
    bool shared;  /* one request for many operations: complete from the start, no communicator, never freed */
    bool watched; /* completion must wake threads: the process is threaded */
    /* Status of a receive; that of a send stays empty. */
    int source, tag;
    MPI_Count bytes;
    void (*on_complete)(struct request *r); /* internal users (schedules, bsend): runs once inside progress */
    void *user;                             /* argument for on_complete */
};

/* A set of requests of which one or all are awaited; net_waiter.of points to it. */
struct request_set {
    int count;
    const MPI_Request *handles;
};

/* The rest of request_complete, for requests with a callback or waiting threads. */
void request_complete_watched(struct request *r);

/* Marks the request complete, runs on_complete, wakes waiting threads, and releases the request if the user
 * has freed it already. */
static inline void request_complete(struct request *r, int error)
{
    r->error = error;
    if (likely(!r->watched && !r->freed && !r->on_complete))
        atomic_store_explicit(&r->complete, 1, memory_order_release);
    else
        request_complete_watched(r);
}

/* Prepares a request of any kind: active, not complete, empty status. */
void request_setup(struct request *r, struct p2p *p, const struct request_ops *ops);

/* Releases the request's communicator and calls ops->release. */
void request_free(struct request *r);

/* Detaches a request: when it completes, `done` runs inside progress and the request is released. False,
 * without effect, if the request is complete already. */
static inline bool request_detach(struct request *r, void (*done)(struct request *r), void *user)
{
    if (atomic_load_explicit(&r->complete, memory_order_acquire))
        return false;
    r->on_complete = done;
    r->user = user;
    r->freed = true;
    return true;
}

/* Fills a user's status (if not MPI_STATUS_IGNORE) from a complete request, not touching MPI_ERROR. Returns
 * the error of a generalized request's query function, else 0. */
int request_status(struct request *r, MPI_Status *status);

/* The "empty" status of null and inactive requests. */
void status_set_empty(MPI_Status *status);

/* Store the byte count and the cancellation of an operation in MPI_Status.MPI_internal, and read them. */
static inline void status_set_bytes(MPI_Status *s, MPI_Count bytes)
{
    __builtin_memcpy(&s->MPI_internal[0], &bytes, sizeof(bytes));
}
static inline MPI_Count status_bytes(const MPI_Status *s)
{
    MPI_Count bytes;
    __builtin_memcpy(&bytes, &s->MPI_internal[0], sizeof(bytes));
    return bytes;
}
static inline void status_set_cancelled(MPI_Status *s, bool cancelled)
{
    s->MPI_internal[2] = cancelled;
}
static inline bool status_cancelled(const MPI_Status *s)
{
    return s->MPI_internal[2] != 0;
}

static inline MPI_Request request_handle(struct request *r)
{
    return (MPI_Request)r;
}
/* NULL for MPI_REQUEST_NULL and for invalid handles, which callers distinguish by the handle. */
static inline struct request *request_from_handle(MPI_Request handle)
{
    if (handle_is_predefined(handle))
        return NULL;
    struct request *r = (struct request *)handle;
    return object_has_magic(r, MAGIC_REQUEST) ? r : NULL;
}

#endif
