/* note.c: sends notes about messages, stores received notes until their message is matched, and compares them
 * with the receive.
 *
 * Frames of a peer arrive in order, so a note is about the next message of that peer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/note.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dt/kind.h"
#include "dt/walk.h"
#include "p2p/engine.h"
#include "p2p/message.h"

/* A stored note: about a peer's next message, about an unexpected message, or about a posted receive. */
struct kept {
    struct list link;
    enum { OF_PEER, OF_MESSAGE, OF_RECEIVE } of;
    uint32_t peer;
    uint64_t order; /* number of the message or the receive */
    struct note note;
};

/* A note that could not be sent yet. */
struct waiting {
    struct net_pending pending;
    struct peer *to;
    struct frame_header header;
    struct note note;
};

static int note_add_run(void *context, struct dtype *basic, MPI_Count count, char *address)
{
    struct note *n = context;
    (void)address;
    struct note_run *last = n->nruns > 0 ? &n->runs[n->nruns - 1] : NULL;
    if (last && last->kind == basic->kind) {
        last->count += (uint64_t)count;
        return 0;
    }
    if (n->nruns == NOTE_RUNS) {
        n->more = 1;
        return 1;
    }
    struct note_run *run = &n->runs[n->nruns++];
    *run = (struct note_run){.count = (uint64_t)count, .kind = basic->kind};
    snprintf(run->name, sizeof(run->name), "%.*s", NOTE_NAME - 1, basic->name);
    return 0;
}

static void note_describe(struct note *out, struct dtype *type, MPI_Count count)
{
    out->count = (uint64_t)count;
    out->nruns = out->more = 0;
    snprintf(out->type, sizeof(out->type), "%.*s", NOTE_NAME - 1, type->name);
    if (type->kind == KIND_MIXED || !type->handle)
        dt_walk(type, count, NULL, WALK_BASIC, note_add_run, out);
    else
        note_add_run(out, type, count, NULL);
}

static bool is_packed_note(const struct note *n)
{
    return n->nruns > 0 && strcmp(n->runs[0].name, "MPI_PACKED") == 0;
}

/* Whether the type signatures of send and receive can match, as far as the notes contain them. */
static bool note_matches(const struct note *sent, const struct note *received)
{
    uint32_t r = 0;
    uint64_t room = received->nruns > 0 ? received->runs[0].count : 0;
    if (is_packed_note(sent) || is_packed_note(received))
        return true; /* MPI_PACKED matches any type (MPI 5.0, 3.3.1) */
    for (uint32_t s = 0; s < sent->nruns; s++) {
        for (uint64_t left = sent->runs[s].count; left > 0;) {
            while (r < received->nruns && room == 0)
                room = ++r < received->nruns ? received->runs[r].count : 0;
            if (r == received->nruns)
                return true; /* beyond the recorded runs, or a message that is too long (MPI_ERR_TRUNCATE) */
            if (sent->runs[s].kind != received->runs[r].kind)
                return false;
            const uint64_t both = MIN(left, room);
            left -= both;
            room -= both;
        }
    }
    return true;
}

static void note_store(struct p2p *p, int of, uint32_t peer, uint64_t order, const struct note *note)
{
    struct kept *k = malloc(sizeof(*k));
    if (!k)
        return; /* out of memory: this message is not compared */
    *k = (struct kept){.of = of, .peer = peer, .order = order, .note = *note};
    list_append(&p->notes, &k->link);
}

/* Removes a note and returns it in *out; false when there is none. */
static bool note_remove(struct p2p *p, int of, uint32_t peer, uint64_t order, struct note *out)
{
    list_foreach_safe(pos, after, &p->notes)
    {
        struct kept *k = list_entry(pos, struct kept, link);
        if ((int)k->of != of || (of == OF_PEER ? k->peer != peer : k->order != order))
            continue;
        *out = k->note;
        list_remove(&k->link);
        free(k);
        return true;
    }
    return false;
}

static void note_compare(struct p2p *p, uint32_t from, struct envelope env, const struct note *sent,
                         const struct p2p_request *r)
{
    struct note received = {0};
    if (!note_remove(p, OF_RECEIVE, 0, r->match.order, &received))
        p->debug->where(&received.place); /* not recorded before: the program is calling the receive now */
    note_describe(&received, r->type, r->count);
    if (!note_matches(sent, &received))
        p->debug->differs(p, from, env, sent, &received);
}

static void note_handle_before_match(struct p2p *p, struct peer *from, const struct frame_header *h)
{
    struct note sent;
    const struct envelope env = header_envelope(h);
    struct match_entry *e = posted_find(&p->posted, env);
    if (!note_remove(p, OF_PEER, from->rank, 0, &sent))
        return;
    if (e)
        note_compare(p, from->rank, env, &sent, container_of(e, struct p2p_request, match));
    else
        note_store(p, OF_MESSAGE, from->rank, p->order,
                   &sent); /* p->order will be the number of the message */
}

static void note_handle_frame(struct p2p *p, struct peer *from, const void *payload, size_t len)
{
    struct note note;
    CHECK(len == sizeof(note), "a note of FISHPLATE_DEBUG=match has a wrong length");
    memcpy(&note, payload, sizeof(note));
    note.nruns = MIN(note.nruns, (uint32_t)NOTE_RUNS);
    note.type[NOTE_NAME - 1] = note.place.path[sizeof(note.place.path) - 1] = '\0';
    for (int i = 0; i < NOTE_RUNS; i++)
        note.runs[i].name[NOTE_NAME - 1] = '\0';
    note_store(p, OF_PEER, from->rank, 0, &note);
}

/* Replaces net->deliver while FISHPLATE_DEBUG=match is in use. */
static void deliver_with_notes(void *ctx, struct peer *from, const struct frame_header *h,
                               const void *payload, size_t len)
{
    struct p2p *p = ctx;
    const bool message = h->kind == FRAME_EAGER || h->kind == FRAME_EAGER_SYNC || h->kind == FRAME_RTS;
    if (h->kind == FRAME_NOTE)
        note_handle_frame(p, from, payload, len);
    else if (message && !(h->context & 1) && !list_empty(&p->notes))
        note_handle_before_match(p, from, h);
    if (h->kind != FRAME_NOTE)
        p->deliver_without_notes(ctx, from, h, payload, len);
}

static int note_resume(struct net_pending *item)
{
    struct waiting *w = container_of(item, struct waiting, pending);
    const int rc = peer_send_now(w->to, &w->header, &w->note, sizeof(w->note));
    if (rc == ERR_AGAIN)
        return rc;
    free(w);
    return 0;
}

void note_send(struct p2p *p, struct p2p_request *r)
{
    struct note note = {0};
    const struct frame_header header = {.kind = FRAME_NOTE, .context = r->header.context};
    if (r->header.context & 1)
        return;
    if (p->debug->made && !r->stack)
        p->debug->made(&r->base);
    if (!p->debug->match || r->length == 0 || sizeof(note) > r->peer->caps.frame_max)
        return;
    p->debug->where(&note.place);
    note_describe(&note, r->type, r->count);
    if (peer_send(r->peer, &header, &note, sizeof(note)) == 0)
        return;
    struct waiting *w = malloc(sizeof(*w));
    if (!w)
        return; /* out of memory: this message is not compared */
    *w = (struct waiting){.pending.resume = note_resume, .to = r->peer, .header = header, .note = note};
    peer_queue(r->peer, &w->pending);
}

void note_check_at_post(struct p2p *p, struct p2p_request *r)
{
    struct note note = {0};
    if (r->match.env.context & 1)
        return;
    if (p->debug->made && !r->stack)
        p->debug->made(&r->base);
    if (!p->debug->match)
        return;
    p->debug->where(&note.place);
    note_store(p, OF_RECEIVE, 0, r->match.order, &note);
}

void note_check_at_receive(struct p2p *p, struct p2p_request *r, const struct message *m)
{
    struct note sent;
    if (p->debug->made && !r->stack && !(m->match.env.context & 1))
        p->debug->made(&r->base);
    r->match.order = UINT64_MAX; /* the receive was never posted */
    if (note_remove(p, OF_MESSAGE, 0, m->match.order, &sent))
        note_compare(p, m->from->rank, m->match.env, &sent, r);
}

void p2p_set_debug(struct p2p *p, const struct p2p_debug *debug)
{
    p->debug = debug;
    p->offer_above = 0;
    p->check_posted_from = MIN(p->check_posted_from, 1u);
    list_init(&p->notes);
    if (!debug->match && !debug->made)
        return;
    for (uint32_t r = 0; r < p->net->size; r++)
        if (p->net->peers[r])
            p->net->peers[r]->eager_below = 1;
    if (!debug->match)
        return;
    p->deliver_without_notes = p->net->deliver;
    p->net->deliver = deliver_with_notes;
}

void notes_close(struct p2p *p)
{
    list_foreach_safe(pos, after, &p->notes) free(list_entry(pos, struct kept, link));
    list_init(&p->notes);
}
