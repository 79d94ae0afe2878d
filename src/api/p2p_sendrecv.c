/* p2p_sendrecv.c: a send and a receive in one call; the nonblocking forms are one request over two.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api/p2p.h"
#include "impl.h"
#include "p2p/peer_death.h"

/* The request of a send and a receive: complete when both are; its status is that of the receive. */
struct pair_request {
    struct request base; /* must be the first member */
    struct request *half[2];
    int left;
    int error;
    void *copy; /* copy of the data to send if the receive overwrites them, else NULL */
};

static void pair_release(struct request *r)
{
    struct pair_request *pair = (struct pair_request *)r;
    free(pair->copy);
    r->obj.magic = MAGIC_FREED;
    objmem_free(pair);
}

/* Returns the requests of the send and the receive; a complete one is NULL. */
static struct request *const *pair_get_parts(const struct request *r, int *count)
{
    *count = 2;
    return ((const struct pair_request *)r)->half;
}

static const struct request_ops pair_ops = {
    .name = "sendrecv", .parts = pair_get_parts, .release = pair_release};

static void record_half_result(struct pair_request *pair, const struct request *r, bool receive)
{
    if (receive) {
        pair->base.source = r->source;
        pair->base.tag = r->tag;
        pair->base.bytes = r->bytes;
    }
    if (r->error)
        pair->error = r->error;
    pair->half[receive] = NULL;
    if (--pair->left == 0)
        request_complete(&pair->base, pair->error);
}

static void on_half_done(struct request *r)
{
    struct pair_request *pair = r->user;
    record_half_result(pair, r, r == pair->half[1]);
}

static void watch_half(struct pair_request *pair, int i)
{
    struct request *r = pair->half[i];
    p2p_end_suspended(r); /* ends a suspended receive with an error: a pair cannot stay suspended */
    if (r->complete) {    /* needs no callback; a shared request must not be modified */
        record_half_result(pair, r, i == 1);
        request_free(r);
        return;
    }
    r->user = pair;
    r->on_complete = on_half_done;
    r->freed = true; /* frees the request when it completes */
}

/* Called if the send could not start: cancels the receive; a matched receive is freed at completion. */
static void abandon_receive(struct request *r)
{
    p2p_cancel(r->p2p, r);
    if (r->complete)
        request_free(r);
    else
        r->freed = true;
}

static int pair_start(const struct p2p_call *send, const struct p2p_call *recv, void *copy,
                      MPI_Request *request)
{
    struct pair_request *pair = objmem_new(sizeof(*pair));
    if (!pair) {
        free(copy);
        return err_set(MPI_ERR_NO_MEM, "out of memory for a request");
    }
    struct comm *comm = send->comm;
    request_setup(&pair->base, comm->proc->p2p, &pair_ops);
    pair->copy = copy;
    pair->left = 3; /* events to wait for: the ends of both halves and of this function */
    int rc = p2p_call_start(recv, &pair->half[1]);
    if (rc == 0)
        rc = p2p_call_start(send, &pair->half[0]);
    if (rc != 0) {
        if (pair->half[1])
            abandon_receive(pair->half[1]);
        pair_release(&pair->base);
        return rc;
    }
    request_bind(&pair->base, comm);
    watch_half(pair, 1);
    watch_half(pair, 0);
    if (--pair->left == 0)
        request_complete(&pair->base, pair->error);
    *request = request_handle(&pair->base);
    return 0;
}

/* Packs the data to send, since the receive may overwrite it meanwhile. */
static int packed_copy(struct p2p_call *send, void **out)
{
    size_t len = (size_t)(send->count * send->type->size);
    void *copy = malloc(len ? len : 1);
    if (!copy)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a copy of %zu bytes to send", len);
    const int rc = dt_pack_all(send->type, send->count, send->buf, copy);
    if (rc) {
        free(copy);
        return rc;
    }
    send->buf = copy;
    send->count = (MPI_Count)len;
    send->type = dtype_from_handle(MPI_PACKED);
    *out = copy;
    return 0;
}

static int sendrecv_exchange(const struct p2p_call *send, const struct p2p_call *recv, MPI_Status *status)
{
    struct p2p *p = send->comm->proc->p2p;
    struct request *incoming;
    int rc = p2p_call_start(recv, &incoming);
    if (rc != 0)
        return rc;
    int sent = impl_Send(send->buf, send->count, send->type, send->rank, send->tag, send->comm);
    if (unlikely(sent != 0))
        p2p_cancel(p, incoming);
    p2p_wait(p, incoming);
    p2p_end_suspended(incoming);
    rc = incoming->error;
    request_status(incoming, status);
    request_free(incoming);
    return sent ? sent : rc;
}

int impl_Sendrecv(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, int dest, int sendtag,
                  void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, int source, int recvtag,
                  struct comm *comm, MPI_Status *status)
{
    struct p2p_call send = {P2P_SEND, (void *)(uintptr_t)sendbuf, sendcount, sendtype, dest, sendtag, comm};
    struct p2p_call recv = {P2P_RECV, recvbuf, recvcount, recvtype, source, recvtag, comm};
    return sendrecv_exchange(&send, &recv, status);
}

int impl_Sendrecv_replace(void *buf, MPI_Count count, struct dtype *datatype, int dest, int sendtag,
                          int source, int recvtag, struct comm *comm, MPI_Status *status)
{
    struct p2p_call send = {P2P_SEND, buf, count, datatype, dest, sendtag, comm};
    struct p2p_call recv = {P2P_RECV, buf, count, datatype, source, recvtag, comm};
    void *copy = NULL;
    int rc = packed_copy(&send, &copy);
    if (rc == 0)
        rc = sendrecv_exchange(&send, &recv, status);
    free(copy);
    return rc;
}

int impl_Isendrecv(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, int dest, int sendtag,
                   void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, int source, int recvtag,
                   struct comm *comm, MPI_Request *request)
{
    struct p2p_call send = {P2P_SEND, (void *)(uintptr_t)sendbuf, sendcount, sendtype, dest, sendtag, comm};
    struct p2p_call recv = {P2P_RECV, recvbuf, recvcount, recvtype, source, recvtag, comm};
    return pair_start(&send, &recv, NULL, request);
}

int impl_Isendrecv_replace(void *buf, MPI_Count count, struct dtype *datatype, int dest, int sendtag,
                           int source, int recvtag, struct comm *comm, MPI_Request *request)
{
    struct p2p_call send = {P2P_SEND, buf, count, datatype, dest, sendtag, comm};
    struct p2p_call recv = {P2P_RECV, buf, count, datatype, source, recvtag, comm};
    void *copy = NULL;
    int rc = packed_copy(&send, &copy);
    return rc ? rc : pair_start(&send, &recv, copy, request);
}
