/* rendezvous_split.c: SPLIT: the receiver reads the first part of the message while the sender writes the
 * rest. If processors move the bytes and both ranks have a core, two processors copy at the same time: about
 * twice as fast as reading.
 *
 *     sender                         receiver
 *       RTS (address, key) ------------> match
 *       <----------- CTS_WRITE (split)   address, key and offset of the second part
 *       write =========================>
 *       <=========================  read
 *       WRITTEN ----------------------->
 *       <--------------------------- FIN   the read is done
 *     complete when both are done        complete when both are done
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/rendezvous.h"
#include "p2p/write.h"

static COUNTER(splits, "p2p_rendezvous_split",
               "Large messages of which the receiver read a part while the sender wrote the rest.");

/* ---- the receiver: CTS_WRITE for the second part, and reads the first ---- */

/* Called when one of the two parts has arrived; `first`: the state in which the other part is still
 * missing. */
static void receiver_part_done(struct p2p_request *r, int status, enum p2p_state first)
{
    if (status != 0)
        r->read.status = status;
    if (r->state == STATE_RECV_SPLIT) {
        request_change_state(r, first);
        return;
    }
    rendezvous_end_receive(r, r->read.status, false);
}

static void split_on_read_done(struct read *read, int status)
{
    struct p2p_request *r = container_of(read, struct p2p_request, read.read);
    fin_send(r, status);
    receiver_part_done(r, status, STATE_RECV_SPLIT_WRITTEN);
}

void split_written(struct p2p_request *r, int error)
{
    receiver_part_done(r, error, STATE_RECV_SPLIT_READ);
}

void split_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes)
{
    if (!rendezvous_register_receive(p, r, bytes))
        return;
    counter_add(&splits, 1);
    request_change_state(r, STATE_RECV_SPLIT);
    uint64_t mine = traffic_read_share(&r->ticket);
    rendezvous_request_write(r, CTS_SPLIT, mine, bytes - mine);
    r->read.status = 0;
    read_announced(&r->read.read, r, &r->mem, rts, mine);
    r->read.read.done = split_on_read_done;
    read_start(&r->read.read);
}

/* ---- the sender: writes the second part, and receives FIN when the first has been read ---- */

static void sender_part_done(struct p2p_request *r, int status, enum p2p_state first)
{
    if (status != 0)
        r->base.error = status;
    if (r->state == STATE_SEND_SPLIT) {
        request_change_state(r, first);
        return;
    }
    request_unregister(r);
    request_end(r, r->base.error);
}

static void split_on_write_done(struct p2p_request *r, int status)
{
    sender_part_done(r, status, STATE_SEND_SPLIT_FIN);
}

void split_fin(struct p2p_request *r, int error)
{
    sender_part_done(r, error, STATE_SEND_SPLIT_WRITE);
}

/* Writes to the address in r->write. */
void split_requested(struct p2p_request *r)
{
    request_change_state(r, STATE_SEND_SPLIT);
    r->write.whole = false;
    r->write.done = split_on_write_done;
    write_start_or_queue(r);
}
