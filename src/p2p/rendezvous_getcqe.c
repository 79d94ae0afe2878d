/* rendezvous_getcqe.c: GETCQE: the receiver reads the data from the sender's memory; when the transport
 * reports completion, the message is there and the sender is notified [Takagi13 2.1]. A processor copies the
 * data once, or not at all if an adapter moves it.
 *
 *     sender                         receiver
 *       RTS (address, key) ------------> match
 *       <=========================  read
 *       <--------------------------- FIN   the read is done: complete
 *     complete
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/rendezvous.h"
#include "p2p/protocol.h"

static COUNTER(
    gets, "p2p_rendezvous_getcqe",
    "Large messages that the receiver read from the sender's memory, detecting the end by a completion.");

/* ---- the receiver reads ---- */

static void getcqe_on_read_done(struct read *read, int status)
{
    rendezvous_end_receive(container_of(read, struct p2p_request, read.read), status, true);
}

void read_announced(struct read *read, struct p2p_request *r, struct net_mem *mem, const struct rts *rts,
                    uint64_t bytes)
{
    read->peer = r->peer;
    read->to = r->buf;
    read->mem = mem;
    read->remote = rts->address;
    read->key = rts->key;
    read->bytes = bytes;
    read->seen = NULL;
}

void getcqe_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes)
{
    if (bytes > 0 && !request_register(r, bytes)) {
        protocol_fall_back(p, r, bytes);
        return;
    }
    counter_add(&gets, 1);
    request_change_state(r, STATE_RECV_READ);
    if (bytes == 0) {
        rendezvous_end_receive(r, 0, true);
        return;
    }
    read_announced(&r->read.read, r, &r->mem, rts, bytes);
    r->read.read.done = getcqe_on_read_done;
    read_start(&r->read.read);
}

/* ---- the sender receives FIN ---- */

void getcqe_fin(struct p2p_request *r, int error)
{
    request_unregister(r);
    request_end(r, error);
}
