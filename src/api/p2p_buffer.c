/* p2p_buffer.c: buffered sends and the buffers of the process, of a communicator and of a session.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/p2p.h"
#include "impl.h"
#include "obj/session.h"

struct bsend_pool *bsend_pool_of(struct comm *c)
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

static int buffer_attach(struct bsend_pool **slot, void *buffer, MPI_Count size)
{
    if (*slot)
        return err_set(MPI_ERR_BUFFER, "a buffer is attached already; detach it first");
    if (size < 0)
        return err_set(MPI_ERR_ARG, "size is %lld, which is negative", (long long)size);
    return bsend_attach_buffer(the_proc->p2p, buffer, size, slot);
}

/* Detaches a buffer and returns it through the user's pointer to a pointer. Without a buffer the result is NULL and
 * size 0. The slot is cleared first: other threads may enter while this one waits. */
static int buffer_detach(struct bsend_pool **slot, void *buffer_addr, MPI_Count *size)
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

static int buffer_flush(struct bsend_pool *pool)
{
    if (pool)
        bsend_flush(pool);
    return 0;
}

static int buffer_iflush(struct bsend_pool *pool, MPI_Request *request)
{
    struct request *r = p2p_completed_send_request(the_proc->p2p);
    int rc = pool ? bsend_iflush(pool, &r) : 0;
    if (rc == 0)
        *request = request_handle(r);
    return rc;
}

int impl_Buffer_attach(void *buffer, MPI_Count size)
{
    return buffer_attach(&the_proc->bsend, buffer, size);
}

int impl_Buffer_detach(void *buffer_addr, MPI_Count *size)
{
    return buffer_detach(&the_proc->bsend, buffer_addr, size);
}

int impl_Buffer_flush(void)
{
    return buffer_flush(the_proc->bsend);
}

int impl_Buffer_iflush(MPI_Request *request)
{
    return buffer_iflush(the_proc->bsend, request);
}

int impl_Comm_attach_buffer(struct comm *comm, void *buffer, MPI_Count size)
{
    return buffer_attach(&comm->bsend, buffer, size);
}

int impl_Comm_detach_buffer(struct comm *comm, void *buffer_addr, MPI_Count *size)
{
    return buffer_detach(&comm->bsend, buffer_addr, size);
}

int impl_Comm_flush_buffer(struct comm *comm)
{
    return buffer_flush(comm->bsend);
}

int impl_Comm_iflush_buffer(struct comm *comm, MPI_Request *request)
{
    return buffer_iflush(comm->bsend, request);
}

int impl_Session_attach_buffer(struct session *session, void *buffer, MPI_Count size)
{
    return buffer_attach(&session->bsend, buffer, size);
}

int impl_Session_detach_buffer(struct session *session, void *buffer_addr, MPI_Count *size)
{
    return buffer_detach(&session->bsend, buffer_addr, size);
}

int impl_Session_flush_buffer(struct session *session)
{
    return buffer_flush(session->bsend);
}

int impl_Session_iflush_buffer(struct session *session, MPI_Request *request)
{
    return buffer_iflush(session->bsend, request);
}
