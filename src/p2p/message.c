/* message.c: unexpected messages: stored, probed, freed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/message.h"

#include <stdlib.h>

static COUNTER(unexpected_seen, "p2p_unexpected", "Messages that arrived before their receive was posted.");

struct message *message_new(struct p2p *p, struct peer *from, const struct frame_header *h, size_t payload)
{
    bool pooled = payload <= MESSAGE_SMALL;
    struct message *m = pooled ? pool_get(&p->messages) : malloc(sizeof(*m) + payload);
    CHECK_MEMORY(m != NULL, "a message that arrived before its receive was posted; post receives earlier or "
                            "send less at once");
    m->obj = object_init(MAGIC_MESSAGE);
    m->p2p = p;
    m->comm = NULL;
    m->from = from;
    m->kind = h->kind;
    m->cookie = 0;
    m->pooled = pooled;
    m->match.env = header_envelope(h);
    m->match.order = p->order++;
    unexpected_add(&p->unexpected, &m->match);
    counter_add(&unexpected_seen, 1);
    return m;
}

void message_free(struct message *m)
{
    m->obj.magic = MAGIC_FREED;
    if (m->pooled)
        pool_put(&m->p2p->messages, m);
    else
        free(m);
}

void messages_free_from(struct p2p *p, const struct peer *from)
{
    struct match_table *t = &p->unexpected;
    for (uint32_t i = 0; i < t->nbuckets; i++)
        list_foreach_safe(pos, after, &t->buckets[MATCH_EXACT][i])
        {
            /* link[MATCH_EXACT] is the first member of the entry */
            struct match_entry *e = (struct match_entry *)pos;
            if (from && message_of(e)->from != from)
                continue;
            unexpected_remove(t, e);
            message_free(message_of(e));
        }
}

void p2p_visit_unexpected(const struct p2p *p, int most,
                          void (*show)(void *arg, struct envelope env, const void *payload, uint64_t length),
                          void *arg)
{
    const struct match_table *t = &p->unexpected;
    if (t->count == 0)
        return;
    for (uint32_t i = 0; i < t->nbuckets; i++)
        list_foreach(pos, &t->buckets[MATCH_EXACT][i])
        {
            const struct message *m = message_of((struct match_entry *)pos);
            if (most-- <= 0)
                return;
            show(arg, m->match.env, m->kind == FRAME_RTS ? NULL : m->payload, m->length);
        }
}

static void probe_status(const struct message *m, MPI_Status *status)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = m->match.env.source;
    status->MPI_TAG = m->match.env.tag;
    status_set_bytes(status, (MPI_Count)m->length);
    status_set_cancelled(status, false);
}

bool p2p_iprobe(struct p2p *p, struct envelope env, MPI_Status *status)
{
    struct match_entry *e = unexpected_find(&p->unexpected, env);
    if (e)
        probe_status(message_of(e), status);
    return e != NULL;
}

struct message *p2p_improbe(struct p2p *p, struct envelope env, MPI_Status *status)
{
    struct match_entry *e = unexpected_find(&p->unexpected, env);
    if (!e)
        return NULL;
    unexpected_remove(&p->unexpected, e);
    probe_status(message_of(e), status);
    return message_of(e);
}

void p2p_message_bind(struct message *m, struct comm *comm)
{
    m->comm = comm;
}
