/* loss.c: links that lose packets, and the retransmission of reliable connections. Multicast packets are lost
 * for good. A message is repeated as InfiniBand's reliable connections do (go-back-N): the receiver accepts
 * packets in order only; the first packet after a gap makes it request the missing one (one NAK, which can be
 * lost too), and the sender then repeats everything from there. If no packet follows a lost one, or the NAK
 * is lost, the sender repeats after its timeout. With machine.go_back = 0 the adapter repeats only the lost
 * packet, after the timeout. Every start of a message is an epoch: packets, NAKs and timeouts of an earlier
 * epoch are ignored.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "network_part.h"

/* Drops one reference to the message; frees the message if all its data has arrived and no reference is
 * left. */
static void loss_release_message(struct network *n, uint32_t message)
{
    struct message *m = &n->messages[message];
    m->known--;
    if (m->done && m->known == 0)
        network_message_free(n, message);
}

void loss_message_done(struct network *n, uint32_t message)
{
    n->messages[message].done = true;
    if (n->messages[message].known == 0)
        network_message_free(n, message);
}

bool loss_drops_packet(struct network *n, uint32_t index)
{
    struct packet *p = &n->packets[index];
    const uint32_t message = p->message;
    struct message *m = &n->messages[message];
    if (m->kind == MESSAGE_BARRIER || sim_random_uniform(&n->random) >= n->machine.loss)
        return false;
    n->lost++;
    network_buffer_release(n, p->held,
                           (p->tail > n->now ? p->tail : n->now) + network_link_delay(n, p->held));
    if (m->kind == MESSAGE_PLAIN) {
        if (p->epoch == m->epoch && (!m->broken || p->number < m->gap)) {
            m->broken = true;
            m->gap = p->number;
        }
        m->known++;
        network_schedule(n, n->now + sim_time_from_ns(n->machine.retry_ns), EVENT_RETRY, index);
        return true;
    }
    if (m->kind == MESSAGE_NAK) {
        loss_release_message(n, m->tag);
        network_message_free(n, message);
    } else
        switch_multicast_packet_done(n, message);
    network_packet_free(n, index);
    return true;
}

/* Repeats all packets from the lost one on, after the messages that wait in the adapter's queue. */
static void loss_repeat_from_gap(struct network *n, uint32_t message)
{
    struct message *m = &n->messages[message];
    const bool waits = m->unsent > 0; /* the message is still in the adapter's queue */
    m->epoch++;
    m->broken = m->requested = false;
    m->unsent = m->missing;
    if (!waits)
        network_message_queue(n, message);
}

/* Repeats the lost packet alone. Packet numbers stay unchanged, since no receiver requests packets by number
 * in this mode. */
static void loss_repeat_packet(struct network *n, uint32_t message, uint32_t bytes)
{
    struct message *m = &n->messages[message];
    const bool waits = m->unsent > 0;
    m->unsent += bytes;
    if (!waits)
        network_message_queue(n, message);
}

void loss_timeout(struct network *n, uint32_t index)
{
    const struct packet p = n->packets[index];
    const struct message *m = &n->messages[p.message];
    network_packet_free(n, index);
    if (n->machine.go_back == 0)
        loss_repeat_packet(n, p.message, p.bytes);
    else if (p.epoch == m->epoch && !m->done)
        loss_repeat_from_gap(n, p.message);
    loss_release_message(n, p.message);
}

/* Sends a control packet to the sender, ahead of the messages that its adapter has not cut into packets
 * yet. */
static void loss_request_resend(struct network *n, uint32_t message)
{
    const uint32_t nak = network_message_new(n);
    struct message *m = &n->messages[message];
    if (nak == NONE)
        return;
    m->requested = true;
    m->known++;
    n->messages[nak] = (struct message){.from = m->to,
                                        .to = m->from,
                                        .rail = m->rail,
                                        .kind = MESSAGE_NAK,
                                        .path = m->path,
                                        .urgent = true,
                                        .epoch = m->epoch,
                                        .tag = message,
                                        .next = NONE};
    network_message_queue(n, nak);
}

bool loss_refuses_packet(struct network *n, uint32_t index)
{
    const struct packet *p = &n->packets[index];
    const struct message *m = &n->messages[p->message];
    if (n->machine.go_back == 0 || (p->epoch == m->epoch && !(m->broken && p->number > m->gap)))
        return false;
    n->refused++;
    if (p->epoch == m->epoch && !m->requested)
        loss_request_resend(n, p->message);
    network_packet_free(n, index);
    return true;
}

void loss_on_nak(struct network *n, uint32_t nak)
{
    const struct message request = n->messages[nak];
    const struct message *m = &n->messages[request.tag];
    network_message_free(n, nak);
    if (request.epoch == m->epoch && m->broken && !m->done)
        loss_repeat_from_gap(n, request.tag);
    loss_release_message(n, request.tag);
}
