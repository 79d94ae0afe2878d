/* rendezvous_rput.c: RPUT: the message was announced (RTS), the receiver answers where it shall go (CTS with
 * address and key), the sender writes it there and says so ([Liu04 4.1.1]; the third of [Takagi13 4.3]).
 *
 *     sender                         receiver
 *       RTS ---------------------------> match
 *       <------------------- CTS_WRITE   (address, key)
 *       write =========================>
 *       WRITTEN -----------------------> complete
 *     complete when the write is done
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "p2p/engine.h"

static COUNTER(rputs, "p2p_rendezvous_rput",
               "Large messages the sender wrote into memory the receiver had answered with.");

void rput_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes)
{
    if (!request_register(r, bytes)) {
        rendezvous_in_pieces(p, r, bytes);
        return;
    }
    counter_add(&rputs, 1);
    r->cookie = ids_add(&p->ids, r);
    CHECK_MEMORY(r->cookie != 0, "a large receive");
    struct frame_header header = {.kind = FRAME_CTS_WRITE, .word = rts->cookie};
    struct cts_write cts = {
        .cts = {.cookie = r->cookie, .bytes = bytes}, .address = (uintptr_t)r->buf, .key = r->key};
    control_send(p, r->peer, &header, &cts, sizeof(cts));
}

void cts_write_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                       size_t len)
{
    CHECK(len == sizeof(struct cts_write), "an answer to an announcement has the wrong length");
    struct cts_write cts;
    memcpy(&cts, payload, sizeof(cts));
    struct p2p_request *r = request_known(p, from, h->word, &send_ops);
    CHECK(r != NULL && r->header.kind == FRAME_RTS && r->registered && from->caps.put &&
              cts.offset <= r->length && cts.cts.bytes <= r->length - cts.offset && cts.cts.bytes > 0,
          "an answer arrived to an announcement that was not made");
    r->split = h->flags & CTS_SPLIT;
    r->parts = 2;
    if (!r->split)
        ids_remove(&p->ids, h->word);
    r->header.kind = FRAME_WRITTEN;
    r->peer_cookie = cts.cts.cookie;
    r->expected = cts.cts.bytes;
    r->remote = cts.address;
    r->from = cts.offset;
    r->key = cts.key;
    r->tell = true;
    write_go(r);
}

void rput_written(struct p2p *p, struct p2p_request *r, int error)
{
    ids_remove(&p->ids, r->cookie);
    request_unregister(r);
    rendezvous_took(r, error);
    request_complete(&r->base, error ? error : r->base.error);
}
