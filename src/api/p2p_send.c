/* p2p_send.c: MPI_Send, MPI_Recv and their immediate forms.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/forward.h"
#include "api/p2p.h"
#include "impl.h"
#include "obj/session.h"

static inline int send_to_rank(const void *buf, MPI_Count count, struct dtype *type, int dest, int tag,
                               struct comm *comm, enum send_mode mode)
{
    struct peer *peer;
    if (unlikely(dest == MPI_PROC_NULL))
        return 0;
    int rc = comm_get_peer(comm, dest, &peer);
    if (unlikely(rc != 0))
        return rc;
    return p2p_send(comm->proc->p2p, buf, count, type, peer, comm_envelope(comm, comm->rank, tag), mode);
}

int impl_Send(const void *buf, MPI_Count count, struct dtype *datatype, int dest, int tag, struct comm *comm)
{
    return send_to_rank(buf, count, datatype, dest, tag, comm, SEND_STANDARD);
}

int impl_Ssend(const void *buf, MPI_Count count, struct dtype *datatype, int dest, int tag, struct comm *comm)
{
    return send_to_rank(buf, count, datatype, dest, tag, comm, SEND_SYNCHRONOUS);
}

int impl_Rsend(const void *buf, MPI_Count count, struct dtype *datatype, int dest, int tag, struct comm *comm)
{
    return send_to_rank(buf, count, datatype, dest, tag, comm, SEND_READY);
}

int impl_Recv(void *buf, MPI_Count count, struct dtype *datatype, int source, int tag, struct comm *comm,
              MPI_Status *status)
{
    if (unlikely(source == MPI_PROC_NULL))
        return request_status(p2p_proc_null_request(comm->proc->p2p), status);
    return p2p_recv(comm->proc->p2p, buf, count, datatype, comm_envelope(comm, source, tag), status);
}

static int isend_to_rank(const void *buf, MPI_Count count, struct dtype *type, int dest, int tag,
                         struct comm *comm, enum send_mode mode, struct request **out)
{
    struct p2p *p = comm->proc->p2p;
    struct peer *peer;
    if (unlikely(dest == MPI_PROC_NULL)) {
        *out = p2p_completed_send_request(p);
        return 0;
    }
    int rc = comm_get_peer(comm, dest, &peer);
    if (unlikely(rc != 0))
        return rc;
    return p2p_isend(p, buf, count, type, peer, comm_envelope(comm, comm->rank, tag), mode, out);
}

static int irecv_from_rank(void *buf, MPI_Count count, struct dtype *type, int source, int tag,
                           struct comm *comm, struct request **out)
{
    struct p2p *p = comm->proc->p2p;
    if (unlikely(source == MPI_PROC_NULL)) {
        *out = p2p_proc_null_request(p);
        return 0;
    }
    return p2p_irecv(p, buf, count, type, comm_envelope(comm, source, tag), out);
}

int p2p_call_start(const struct p2p_call *c, struct request **out)
{
    switch (c->kind) {
    case P2P_SEND:
        return isend_to_rank(c->buf, c->count, c->type, c->rank, c->tag, c->comm, SEND_STANDARD, out);
    case P2P_SSEND:
        return isend_to_rank(c->buf, c->count, c->type, c->rank, c->tag, c->comm, SEND_SYNCHRONOUS, out);
    case P2P_RSEND:
        return isend_to_rank(c->buf, c->count, c->type, c->rank, c->tag, c->comm, SEND_READY, out);
    case P2P_BSEND:
        *out = p2p_completed_send_request(c->comm->proc->p2p);
        return impl_Bsend(c->buf, c->count, c->type, c->rank, c->tag, c->comm);
    default:
        return irecv_from_rank(c->buf, c->count, c->type, c->rank, c->tag, c->comm, out);
    }
}

/* Returns a request's handle. `r` is a pointer because callers set *r inside the first argument, and
 * arguments are evaluated in any order. */
static inline int return_request_handle(int rc, struct request **r, struct comm *comm, MPI_Request *request)
{
    if (unlikely(rc != 0))
        return rc;
    request_bind(*r, comm);
    *request = request_handle(*r);
    return 0;
}

int impl_Isend(const void *buf, MPI_Count count, struct dtype *datatype, int dest, int tag, struct comm *comm,
               MPI_Request *request)
{
    struct request *r = NULL;
    return return_request_handle(isend_to_rank(buf, count, datatype, dest, tag, comm, SEND_STANDARD, &r), &r,
                                 comm, request);
}

int impl_Issend(const void *buf, MPI_Count count, struct dtype *datatype, int dest, int tag,
                struct comm *comm, MPI_Request *request)
{
    struct request *r = NULL;
    return return_request_handle(isend_to_rank(buf, count, datatype, dest, tag, comm, SEND_SYNCHRONOUS, &r),
                                 &r, comm, request);
}

int impl_Irsend(const void *buf, MPI_Count count, struct dtype *datatype, int dest, int tag,
                struct comm *comm, MPI_Request *request)
{
    struct request *r = NULL;
    return return_request_handle(isend_to_rank(buf, count, datatype, dest, tag, comm, SEND_READY, &r), &r,
                                 comm, request);
}

int impl_Irecv(void *buf, MPI_Count count, struct dtype *datatype, int source, int tag, struct comm *comm,
               MPI_Request *request)
{
    struct request *r = NULL;
    return return_request_handle(irecv_from_rank(buf, count, datatype, source, tag, comm, &r), &r, comm,
                                 request);
}

/* Buffered sends and the buffers of the process, of a communicator and of a session. */

/* Returns the buffer for buffered sends on this communicator: the communicator's, its session's or the
 * process's; NULL if none is attached. */
static struct bsend_pool *bsend_pool_of(struct comm *c)
{
    if (c->bsend)
        return c->bsend;
    if (c->session && c->session->bsend)
        return c->session->bsend;
    return c->proc->bsend;
}

int impl_Bsend(const void *buf, MPI_Count count, struct dtype *datatype, int dest, int tag, struct comm *comm)
{
    if (dest == MPI_PROC_NULL)
        return 0;
    struct bsend_pool *pool = bsend_pool_of(comm);
    if (!pool)
        return err_set(MPI_ERR_BUFFER,
                       "no buffer is attached for buffered sends; call MPI_Buffer_attach first");
    struct peer *peer;
    int rc = comm_get_peer(comm, dest, &peer);
    return rc ? rc : bsend_send(pool, buf, count, datatype, peer, comm_envelope(comm, comm->rank, tag));
}

int impl_Ibsend(const void *buf, MPI_Count count, struct dtype *datatype, int dest, int tag,
                struct comm *comm, MPI_Request *request)
{
    int rc = impl_Bsend(buf, count, datatype, dest, tag, comm);
    if (rc == 0)
        *request = request_handle(p2p_completed_send_request(comm->proc->p2p));
    return rc;
}

int buffer_attach(struct bsend_pool **slot, void *buffer, MPI_Count size)
{
    if (*slot)
        return err_set(MPI_ERR_BUFFER, "a buffer is attached already; detach it first");
    if (size < 0)
        return err_set(MPI_ERR_ARG, "size is %lld, which is negative", (long long)size);
    return bsend_attach_buffer(the_proc->p2p, buffer, size, slot);
}

/* The slot is cleared first: other threads may enter while this one waits. */
int buffer_detach(struct bsend_pool **slot, void *buffer_addr, MPI_Count *size)
{
    void *buffer = NULL;
    struct bsend_pool *pool = *slot;
    *size = 0;
    *slot = NULL;
    if (pool)
        bsend_detach(pool, &buffer, size);
    memcpy(buffer_addr, &buffer, sizeof(buffer));
    return 0;
}

int buffer_flush(struct bsend_pool **slot)
{
    if (*slot)
        bsend_flush(*slot);
    return 0;
}

int buffer_iflush(struct bsend_pool **slot, MPI_Request *request)
{
    struct request *r = p2p_completed_send_request(the_proc->p2p);
    int rc = *slot ? bsend_iflush(*slot, &r) : 0;
    if (rc == 0)
        *request = request_handle(r);
    return rc;
}
