/* eager.c: messages whose data travels with the envelope, in one frame [Liu04 3.2]. A synchronous message is
 * acknowledged when it is matched.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "p2p/faulty.h"
#include "p2p/message.h"

static void eager_acknowledge(struct p2p *p, struct peer *to, uint64_t cookie)
{
    struct frame_header ack = {.kind = FRAME_ACK, .word = cookie};
    control_send(p, to, &ack, NULL, 0);
}

static void store_unexpected(struct p2p *p, struct peer *from, const struct frame_header *h,
                             const void *payload, size_t len)
{
    if (unlikely(p->faults) && fault_check_unexpected(p, from, h, h->word))
        return;
    struct message *m = message_new(p, from, h, len);
    m->length = len;
    m->cookie = h->kind == FRAME_EAGER_SYNC ? h->word : 0;
    copy_bytes(m->payload, payload, len);
}

void eager_handle_frame(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                        size_t len)
{
    struct envelope env = header_envelope(h);
    from->messages_from[envelope_class(env)]++;
    struct p2p_request *r = posted_remove_matching(p, env);
    if (unlikely(!r)) {
        store_unexpected(p, from, h, payload, len);
        return;
    }
    int rc = recv_set_status(r, env, len);
    const int copied = recv_copy_payload(r, payload, len);
    request_end(r, rc ? rc : copied);
}

void eager_sync_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                        size_t len)
{
    struct envelope env = header_envelope(h);
    from->messages_from[envelope_class(env)]++;
    struct p2p_request *r = posted_remove_matching(p, env);
    if (!r) {
        store_unexpected(p, from, h, payload, len);
        return;
    }
    eager_acknowledge(p, from, h->word);
    int rc = recv_set_status(r, env, len);
    const int copied = recv_copy_payload(r, payload, len);
    request_end(r, rc ? rc : copied);
}

void eager_receive_stored(struct p2p *p, struct p2p_request *r, struct message *m)
{
    if (m->kind == FRAME_EAGER_SYNC)
        eager_acknowledge(p, m->from, m->cookie);
    int rc = recv_set_status(r, m->match.env, m->length);
    const int copied = recv_copy_payload(r, m->payload, m->length);
    request_end(r, rc ? rc : copied);
}

void ack_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len)
{
    struct p2p_request *r = request_find_by_cookie(p, from, h->word, STATE_BIT(SEND_ACK));
    CHECK(r != NULL, "an acknowledgement arrived for a send that does not exist");
    request_unpublish(r);
    request_end(r, 0);
}
