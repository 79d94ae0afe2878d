/* rendezvous_rput.c: RPUT: the sender announces the message (RTS), the receiver answers with the address and
 * key of its buffer (CTS_WRITE), the sender writes the message there and sends a notification ([Liu04 4.1.1];
 * the third protocol of [Takagi13 4.3]).
 *
 *     sender                         receiver
 *       RTS ---------------------------> match
 *       <------------------- CTS_WRITE   (address, key)
 *       write =========================>
 *       WRITTEN -----------------------> complete
 *     complete when the write is done
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/kill_point.h"
#include "p2p/rendezvous.h"
#include "p2p/write.h"

static COUNTER(
    rputs, "p2p_rendezvous_rput",
    "Large messages that the sender wrote into the receive buffer after the receiver's reply (RPUT).");

/* At the receiver: sends the address to write to. */
void rput_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes)
{
    if (!rendezvous_register_receive(p, r, bytes))
        return;
    counter_add(&rputs, 1);
    request_change_state(r, STATE_RECV_RPUT);
    rendezvous_request_write(r, 0, 0, bytes);
    KILL_POINT(write_requested);
}

static void rput_on_write_done(struct p2p_request *r, int status)
{
    request_unregister(r);
    request_end(r, status);
}

/* At the sender: writes to the address in r->write. */
void rput_requested(struct p2p_request *r)
{
    request_change_state(r, STATE_SEND_RPUT);
    request_unpublish(r);
    r->write.whole = true;
    r->write.done = rput_on_write_done;
    KILL_POINT(write_beginning);
    write_start_or_queue(r);
}
