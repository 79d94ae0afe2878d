/* control_frames.c: control messages of protocols: answers and handshakes. They are sent while a frame is being
 * delivered and must never wait, so a control message that the transport does not accept is copied and queued
 * behind the frames that wait for the same peer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/engine.h"

#include <string.h>

struct control {
    struct net_pending pending;
    struct p2p *p2p;
    struct peer *to;
    struct frame_header header;
    size_t len;
    char payload[160]; /* struct mapput is the largest */
};

static int control_resume(struct net_pending *item)
{
    struct control *c = container_of(item, struct control, pending);
    int rc = peer_send_now(c->to, &c->header, c->payload, c->len);
    if (rc == ERR_AGAIN)
        return rc;
    pool_put(&c->p2p->controls, c);
    return 0;
}

static struct control *control_new(struct p2p *p, struct peer *to, const struct frame_header *header,
                                   const void *payload, size_t len)
{
    if (p->controls.item_size == 0)
        pool_init(&p->controls, sizeof(struct control), 64);
    struct control *c = pool_get(&p->controls);
    CHECK_MEMORY(c != NULL, "a control message");
    CHECK(len <= sizeof(c->payload), "a control message is too long");
    *c =
        (struct control){.pending.resume = control_resume, .p2p = p, .to = to, .header = *header, .len = len};
    if (len)
        memcpy(c->payload, payload, len);
    return c;
}

void control_send(struct p2p *p, struct peer *to, const struct frame_header *header, const void *payload,
                  size_t len)
{
    if (unlikely(peer_send(to, header, payload, len) != 0))
        peer_queue(to, &control_new(p, to, header, payload, len)->pending);
}

void control_send_first(struct p2p *p, struct peer *to, const struct frame_header *header,
                        const void *payload, size_t len)
{
    if (likely(peer_send_now(to, header, payload, len) == 0))
        return;
    struct control *c = control_new(p, to, header, payload, len);
    peer_queue(to, &c->pending);
    list_remove(&c->pending.link);
    list_prepend(&to->pending, &c->pending.link);
}
