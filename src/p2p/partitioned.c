/* partitioned.c: partitioned communication. The two sides exchange descriptions once. The sender's
 * description is an ordinary message on a context of its own, sent when the request is initialised, so that
 * matching pairs the requests in the order of initialisation; the receiver answers with its description. Then
 * both sides know the transfers (partition.h). Each transfer is an ordinary message on a channel that no
 * other request uses.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/partitioned.h"

#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/hash.h"
#include "base/objmem.h"
#include "base/tunable.h"
#include "base/util.h"
#include "net/guest.h"
#include "p2p/engine.h"
#include "p2p/partition.h"

static LABORATORY_SIZE(
    together, "PARTITION_TOGETHER", 4096, 0, 1 << 20,
    "Partitions that the receiver cannot distinguish are sent together, up to this many bytes.");
static COUNTER(transfers, "p2p_partition_transfers", "Messages that carried partitions.");

/* Contexts of communicators are small numbers. A description has the communicator's context with
 * CONTEXT_MEET; transfers and the answer have the sender's channel as context and job ranks as sources. */
#define CONTEXT_MEET    PARTITIONED_MEET
#define CONTEXT_CHANNEL PARTITIONED_CHANNEL
#define TAG_ANSWER      INT32_MAX

struct meeting {
    uint32_t channel; /* the sender's channel (p2p_new_channel) */
    int32_t partitions;
    uint64_t bytes; /* of a partition */
    uint64_t together;
};

struct transfer {
    struct partitioned *owner;
    int index;
    char *bounce; /* buffer for data that ends within an element of the receiver's type; NULL: not needed */
};

struct partitioned {
    struct request base; /* must be the first member */
    struct list link;    /* on p2p->partitioned */
    bool sends;
    bool met;    /* both descriptions are known */
    bool orphan; /* the user has freed the request before both descriptions were known */
    char *buf;
    int partitions;
    MPI_Count count;
    struct dtype *type;
    int tag;
    struct peer *peer; /* NULL: MPI_PROC_NULL */
    struct meeting mine, theirs;
    int mismatch; /* error of every round if the descriptions do not fit */
    int lost;     /* error of every round if the partner died before the descriptions were exchanged */
    struct envelope plain; /* envelope of an ordinary message, with the other side as source */
    struct partition_plan plan;
    struct transfer *transfers;
    int pending;  /* transfers of this round that have not ended */
    int error;    /* first error of this round */
    bool *ready;  /* sender: partitions marked in this round */
    int *missing; /* sender: partitions a transfer waits for; receiver: transfers a partition waits for */
};

static struct partition_side partition_side_from_meeting(const struct meeting *m)
{
    return (struct partition_side){.partitions = m->partitions, .bytes = m->bytes};
}

static struct partition_side receiver_side(const struct partitioned *r)
{
    return partition_side_from_meeting(r->sends ? &r->theirs : &r->mine);
}

static struct partition_side sender_side(const struct partitioned *r)
{
    return partition_side_from_meeting(r->sends ? &r->mine : &r->theirs);
}

/* Returns a number of a process that is the same at both ends, even if its rank differs between their
 * worlds. */
static uint32_t process_number_across_worlds(const struct net *net, uint32_t rank)
{
    struct net_name name = net_process_name(net, rank);
    return (uint32_t)hash_positive(hash_add(HASH_START, &name, sizeof(name)));
}

static struct envelope channel_envelope(const struct partitioned *r, bool from_me, int tag)
{
    uint32_t channel = r->sends ? r->mine.channel : r->theirs.channel;
    uint32_t source = from_me ? r->peer->net->rank : r->peer->rank;
    if (unlikely(r->peer->card != NULL))
        source = process_number_across_worlds(r->peer->net, source);
    return (struct envelope){.context = CONTEXT_CHANNEL | channel, .source = (int32_t)source, .tag = tag};
}

/* A transfer has ended; the last one completes the round. */
static void transfer_ended(struct partitioned *r, int error)
{
    r->error = r->error ? r->error : error;
    if (--r->pending == 0)
        request_complete(&r->base, r->error);
}

static void transfer_byte_range(const struct partitioned *r, int index, uint64_t *from, uint64_t *to)
{
    uint64_t bytes = sender_side(r).bytes;
    *from = (uint64_t)r->plan.first[index] * bytes;
    *to = (uint64_t)r->plan.first[index + 1] * bytes;
}

static void transfer_arrived(struct transfer *t, int error)
{
    struct partitioned *r = t->owner;
    uint64_t from, to;
    int first, last;
    transfer_byte_range(r, t->index, &from, &to);
    if (error) {
        free(t->bounce);
        t->bounce = NULL;
        transfer_ended(r, error);
        return;
    }
    if (t->bounce) {
        struct dt_cursor cursor;
        dt_cursor_init(&cursor, r->type, r->count * r->partitions, r->buf);
        dt_cursor_seek(&cursor, from);
        dt_cursor_unpack(&cursor, t->bounce, (size_t)(to - from));
        free(t->bounce);
        t->bounce = NULL;
    }
    partition_find_touched(receiver_side(r), from, to, &first, &last);
    for (int i = first; i < last; i++)
        r->missing[i]--;
    transfer_ended(r, error);
}

static void transfer_done(struct request *q)
{
    struct transfer *t = q->user;
    if (t->owner->sends)
        transfer_ended(t->owner, q->error);
    else
        transfer_arrived(t, q->error);
}

/* Takes over the request of the transfer's message, which may be complete already. */
static void transfer_attach_request(struct transfer *t, int rc, struct request *q)
{
    if (rc != 0) {
        if (t->owner->sends)
            transfer_ended(t->owner, rc);
        else
            transfer_arrived(t, rc);
        return;
    }
    if (!q->complete) {
        q->user = t;
        q->on_complete = transfer_done;
        q->freed = true;
        return;
    }
    int error = q->error;
    request_free(q);
    if (t->owner->sends)
        transfer_ended(t->owner, error);
    else
        transfer_arrived(t, error);
}

static void transfer_send(struct partitioned *r, int index)
{
    struct request *q = NULL;
    int first = r->plan.first[index], n = r->plan.first[index + 1] - first;
    char *buf = ptr_add(r->buf, (MPI_Aint)(first * r->count * r->type->extent));
    counter_add(&transfers, 1);
    int rc = p2p_isend(r->base.p2p, buf, n * r->count, r->type, r->peer, channel_envelope(r, true, index),
                       SEND_STANDARD, &q);
    transfer_attach_request(&r->transfers[index], rc, q);
}

/* Posts a transfer for its part of the receiver's buffer, which is one block, whole elements, or neither. */
static int transfer_post(struct partitioned *r, struct transfer *t, struct request **out)
{
    struct envelope env = channel_envelope(r, false, t->index);
    uint64_t from, to, size = (uint64_t)r->type->size;
    struct dtype *byte = dtype_from_handle(MPI_BYTE);
    MPI_Aint offset;
    transfer_byte_range(r, t->index, &from, &to);
    if (size == 0 || dt_is_contiguous_block(r->type, r->count * r->partitions, &offset)) {
        char *at = size ? ptr_add(r->buf, offset + (MPI_Aint)from) : r->buf;
        return p2p_irecv(r->base.p2p, at, (MPI_Count)(to - from), byte, env, out);
    }
    if (from % size == 0 && to % size == 0) {
        char *at = ptr_add(r->buf, (MPI_Aint)(from / size) * r->type->extent);
        return p2p_irecv(r->base.p2p, at, (MPI_Count)((to - from) / size), r->type, env, out);
    }
    t->bounce = malloc((size_t)(to - from));
    if (!t->bounce)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a transfer of partitions");
    return p2p_irecv(r->base.p2p, t->bounce, (MPI_Count)(to - from), byte, env, out);
}

static void receive_round(struct partitioned *r)
{
    uint64_t from, to;
    int first, last;
    memset(r->missing, 0, (size_t)r->partitions * sizeof(*r->missing));
    for (int i = 0; i < r->plan.transfers; i++) {
        transfer_byte_range(r, i, &from, &to);
        partition_find_touched(receiver_side(r), from, to, &first, &last);
        for (int k = first; k < last; k++)
            r->missing[k]++;
    }
    for (int i = 0; i < r->plan.transfers; i++) {
        struct request *q = NULL;
        int rc = transfer_post(r, &r->transfers[i], &q);
        transfer_attach_request(&r->transfers[i], rc, q);
    }
}

/* Sends the partitions that became ready before the other side was known. */
static void send_round(struct partitioned *r)
{
    for (int i = 0; i < r->plan.transfers; i++) {
        r->missing[i] = 0;
        for (int k = r->plan.first[i]; k < r->plan.first[i + 1]; k++)
            r->missing[i] += !r->ready[k];
        if (r->missing[i] == 0)
            transfer_send(r, i);
    }
}

static void round_begin(struct partitioned *r)
{
    r->error = r->mismatch;
    r->pending = 1; /* the round must not end, and the request not be freed, during the loop */
    if (r->mismatch == 0) {
        r->pending += r->plan.transfers;
        if (r->sends)
            send_round(r);
        else
            receive_round(r);
    }
    transfer_ended(r, 0);
}

/* Called when the message that describes one side's partitions has been sent. */
static void on_description_sent(struct request *q)
{
    free(q->user);
}

static int send_description(struct partitioned *r, struct envelope env)
{
    struct meeting *note = malloc(sizeof(*note));
    struct request *q;
    if (!note)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a partitioned request");
    *note = r->mine;
    int rc = p2p_isend(r->base.p2p, note, sizeof(*note), dtype_from_handle(MPI_BYTE), r->peer, env,
                       SEND_STANDARD, &q);
    if (rc == 0 && !q->complete) {
        q->user = note;
        q->on_complete = on_description_sent;
        q->freed = true;
        return 0;
    }
    free(note);
    if (rc == 0) {
        rc = q->error;
        request_free(q);
    }
    return rc;
}

static void partitioned_free(struct partitioned *r)
{
    list_remove(&r->link);
    dtype_release(r->type);
    partition_plan_free(&r->plan);
    free(r->transfers);
    free(r->ready);
    free(r->missing);
    r->base.obj.magic = MAGIC_FREED;
    objmem_free(r);
}

/* Compares the totals of both sides: a receive may have more room than is sent. Partitions behind the end of
 * the sent data need no transfer and count as arrived. */
static int compare_totals(struct partitioned *r)
{
    struct partition_side from = sender_side(r), to = receiver_side(r);
    uint64_t sent = (uint64_t)from.partitions * from.bytes, room = (uint64_t)to.partitions * to.bytes;
    if (!r->sends)
        r->base.bytes = (MPI_Count)MIN(sent, room);
    if (sent <= room)
        return 0;
    return err_set(MPI_ERR_TRUNCATE,
                   "a partitioned send of %llu bytes met a partitioned receive of %llu bytes with tag %d",
                   (unsigned long long)sent, (unsigned long long)room, r->tag);
}

static int partitioned_make_plan(struct partitioned *r)
{
    uint64_t limit = r->sends ? r->mine.together : r->theirs.together;
    int rc = partition_plan_make(sender_side(r), receiver_side(r), limit, &r->plan);
    if (rc != 0)
        return rc;
    int n = r->plan.transfers;
    r->transfers = calloc((size_t)n + 1, sizeof(*r->transfers));
    r->missing = calloc((size_t)(r->sends ? n : r->partitions) + 1, sizeof(*r->missing));
    if (!r->transfers || !r->missing)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %d partitions", r->partitions);
    for (int i = 0; i < n; i++)
        r->transfers[i] = (struct transfer){.owner = r, .index = i};
    return 0;
}

static void on_partner_matched(struct partitioned *r)
{
    r->met = true;
    r->mismatch = compare_totals(r);
    if (r->mismatch == 0)
        r->mismatch = partitioned_make_plan(r);
    if (!r->sends) {
        int rc = send_description(r, channel_envelope(r, true, TAG_ANSWER));
        r->mismatch = r->mismatch ? r->mismatch : rc;
    }
    if (r->orphan)
        partitioned_free(r);
    else if (r->base.active)
        round_begin(r);
}

static void on_partner_lost(struct partitioned *r, int error)
{
    r->lost = error;
    if (r->orphan)
        partitioned_free(r);
    else if (r->base.active)
        request_complete(&r->base, error);
}

static void on_description_received(struct request *q)
{
    if (q->error)
        on_partner_lost(q->user, q->error);
    else
        on_partner_matched(q->user);
}

/* Posts the receive of the other side's description. */
static int partitioned_match(struct partitioned *r, struct envelope env)
{
    struct request *q;
    int rc = p2p_irecv(r->base.p2p, &r->theirs, sizeof(r->theirs), dtype_from_handle(MPI_BYTE), env, &q);
    if (rc != 0)
        return rc;
    if (q->complete) {
        q->user = r;
        on_description_received(q);
        request_free(q);
        return 0;
    }
    q->user = r;
    q->on_complete = on_description_received;
    q->freed = true;
    return 0;
}

static int partitioned_start(struct request *base)
{
    struct partitioned *r = (struct partitioned *)base;
    atomic_store_explicit(&base->complete, 0, memory_order_relaxed);
    base->active = true;
    base->error = 0;
    if (r->sends)
        memset(r->ready, 0, (size_t)r->partitions * sizeof(*r->ready));
    if (!r->peer || r->lost)
        request_complete(base, r->lost);
    else if (r->met)
        round_begin(r);
    return 0;
}

static void partitioned_release(struct request *base)
{
    struct partitioned *r = (struct partitioned *)base;
    if (r->met || !r->peer || r->lost) {
        partitioned_free(r);
        return;
    }
    /* The description of the other side must still be received: later requests must not match it. */
    r->orphan = true;
    base->obj.magic = MAGIC_FREED;
}

static const struct request_ops psend_ops = {
    .name = "partitioned send", .start = partitioned_start, .release = partitioned_release};
static const struct request_ops precv_ops = {
    .name = "partitioned receive", .start = partitioned_start, .release = partitioned_release};

/* The sender sends its description, and both sides post the receive of the other one. `env`: envelope of an
 * ordinary message from the sender to the receiver. */
static int partitioned_exchange_description(struct partitioned *r, struct envelope env)
{
    env.context |= CONTEXT_MEET;
    if (!r->sends)
        return partitioned_match(r, env);
    r->mine.channel = p2p_new_channel(r->base.p2p);
    int rc = send_description(r, env);
    if (rc == MPIX_ERR_PROC_FAILED || rc == MPIX_ERR_REVOKED) {
        r->lost = rc; /* every started round ends with this error */
        return 0;
    }
    return rc ? rc : partitioned_match(r, channel_envelope(r, false, TAG_ANSWER));
}

/* Finds the request of a message on a channel; none if the request was freed after an error. */
int partitioned_check_message(struct p2p *p, struct envelope env, struct envelope *plain)
{
    list_foreach(pos, &p->partitioned)
    {
        const struct partitioned *r = list_entry(pos, struct partitioned, link);
        if (!r->peer || r->lost || (!r->sends && !r->met))
            continue;
        struct envelope its = channel_envelope(r, false, env.tag);
        if (its.context == env.context && its.source == env.source) {
            *plain = r->plain;
            return 0;
        }
    }
    return MPIX_ERR_REVOKED;
}

int partitioned_new(struct p2p *p2p, const struct partitioned_args *a, struct request **out)
{
    struct partitioned *r = objmem_new(sizeof(*r));
    bool *ready = a->sends ? calloc((size_t)a->partitions + 1, sizeof(*ready)) : NULL;
    if (!r || (a->sends && !ready)) {
        objmem_free(r);
        free(ready);
        return err_set(MPI_ERR_NO_MEM, "out of memory for a partitioned request");
    }
    request_setup(&r->base, p2p, a->sends ? &psend_ops : &precv_ops);
    r->base.persistent = true;
    r->base.active = false;
    r->sends = a->sends;
    r->ready = ready;
    r->buf = a->buf;
    r->partitions = a->partitions;
    r->count = a->count;
    r->type = a->type;
    r->tag = a->envelope.tag;
    r->peer = a->peer;
    r->plain = a->envelope;
    r->plain.source = a->source;
    list_append(&p2p->partitioned, &r->link);
    r->mine = (struct meeting){.partitions = a->partitions,
                               .bytes = (uint64_t)(a->count * a->type->size),
                               .together = (uint64_t)together.value};
    if (!a->sends) {
        r->base.source = a->source;
        r->base.tag = a->peer ? r->tag : MPI_ANY_TAG;
        r->base.bytes = a->peer ? a->partitions * a->count * a->type->size : 0;
    }
    dtype_retain(r->type);
    int rc = a->peer ? partitioned_exchange_description(r, a->envelope) : 0;
    if (rc != 0) {
        partitioned_free(r);
        return rc;
    }
    *out = &r->base;
    return 0;
}

static int check_send(const struct request *r)
{
    if (r->ops != &psend_ops)
        return err_set(MPI_ERR_REQUEST, "request is not a partitioned send");
    if (!r->active)
        return err_set(MPI_ERR_REQUEST, "request has not been started: no partition can be ready");
    return 0;
}

static int check_partition(const struct partitioned *r, int partition)
{
    if (partition < 0 || partition >= r->partitions)
        return err_set(MPI_ERR_ARG, "partition %d is outside 0..%d", partition, r->partitions - 1);
    if (r->sends && r->ready[partition])
        return err_set(MPI_ERR_ARG, "partition %d was marked ready before in this round", partition);
    return 0;
}

static void partitioned_mark_ready(struct partitioned *r, int partition)
{
    r->ready[partition] = true;
    if (!r->peer || !r->met || r->mismatch || r->base.complete)
        return;
    int index = partition_find_transfer(&r->plan, partition);
    if (--r->missing[index] == 0)
        transfer_send(r, index);
}

int partitioned_ready(struct request *request, int first, int last)
{
    struct partitioned *r = (struct partitioned *)request;
    int rc = check_send(request);
    for (int i = first; rc == 0 && i <= last; i++) {
        rc = check_partition(r, i);
        if (rc == 0)
            partitioned_mark_ready(r, i);
    }
    return rc;
}

int partitioned_arrived(struct request *request, int partition, bool *arrived)
{
    struct partitioned *r = (struct partitioned *)request;
    if (request->ops != &precv_ops)
        return err_set(MPI_ERR_REQUEST, "request is not a partitioned receive");
    int rc = check_partition(r, partition);
    if (rc != 0)
        return rc;
    *arrived = true;
    if (!request->active || (request->complete && !request->error))
        return 0;
    if (!request->complete && (!r->met || r->missing[partition] != 0))
        net_progress(p2p_get_net(request->p2p));
    const bool here = r->met && !r->mismatch && r->missing[partition] == 0;
    *arrived = here || request->complete;
    return here || !request->complete
               ? 0
               : err_set(request->error, "partition %d has not arrived, and will not", partition);
}
