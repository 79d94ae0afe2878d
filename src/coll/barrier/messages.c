/* messages.c: sends and receives messages of a barrier, which completes only after all its messages have
 * completed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/barrier/barrier_internal.h"

void hbarrier_record_error(struct hbarrier_run *r, int rc)
{
    if (unlikely(rc) && !r->error)
        r->error = rc;
}

static void message_done(struct request *m)
{
    struct hbarrier_run *r = m->user;
    hbarrier_record_error(r, m->error);
    r->pending--;
}

static void barrier_watch_request(struct hbarrier_run *r, int rc, struct request *m)
{
    hbarrier_record_error(r, rc);
    if (rc)
        return;
    if (request_detach(m, message_done, r)) {
        r->pending++;
        return;
    }
    hbarrier_record_error(r, m->error);
    request_free(m);
}

void hbarrier_send(struct hbarrier_run *r, int rank, const void *data, size_t bytes)
{
    struct comm *c = r->comm;
    struct request *m = NULL;
    struct peer *peer;
    int rc = comm_get_peer(c, rank, &peer);
    if (!rc)
        rc = p2p_isend(c->proc->p2p, data, (MPI_Count)bytes, byte_type(), peer,
                       comm_coll_envelope(c, c->rank, r->tag), SEND_STANDARD, &m);
    barrier_watch_request(r, rc, m);
}

void hbarrier_recv(struct hbarrier_run *r, int rank, void *data, size_t bytes)
{
    struct comm *c = r->comm;
    struct request *m = NULL;
    int rc =
        p2p_irecv(c->proc->p2p, data, (MPI_Count)bytes, byte_type(), comm_coll_envelope(c, rank, r->tag), &m);
    barrier_watch_request(r, rc, m);
}
