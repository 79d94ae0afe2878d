/* p2p_buffer.c: buffered sends and the buffers of the process, of a communicator and of a session.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/forward.h"
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
