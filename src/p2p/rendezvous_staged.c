/* rendezvous_staged.c: STAGED: R3 of GPU memory that the adapter cannot access, without frames for the data. Both
 * ends have a registered staging buffer of two chunks in host memory. The adapter writes one chunk from buffer
 * to buffer while a GPU copies the other one.
 *
 *     sender                               receiver
 *       RTS ---------------------------------> match
 *       <------------------- CTS_WRITE (staged)  address and key of the buffer: the first two chunks
 *       GPU copies a chunk; write ===========>
 *       WRITTEN (end of the chunk) ----------->  GPU copies the chunk
 *       <------------------- CTS_WRITE (staged)  offset of the chunk for which half the buffer is free again
 *       WRITTEN (last) ----------------------->  complete when it is copied
 *     complete
 *
 * An end whose data is in host memory uses a staging buffer, too: one copy by its processor, where frames need
 * two, and no second form of the protocol. A sender without a staging buffer answers with pieces (R3).
 *
 * WRITTEN follows the completion of the write, although frames may be ordered behind writes (put_ordered): the
 * write of a broken connection is repeated, and must not find another message in the receiver's buffer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/rendezvous_staged.h"

#include "base/kill_point.h"
#include "p2p/device_staging.h"

static COUNTER(
    messages, "p2p_rendezvous_staged",
    "Large messages of GPU memory that the adapter wrote from one staging buffer in host memory into "
    "another.");

#define HALVES 2

/* Not if the data was moved to host memory in the place of a staging buffer (device_send_frame). */
static bool is_possible_to_peer(const struct p2p_request *r)
{
    return r->peer->caps.put && !r->peer->caps.cpu_moves && gpu_is_active() &&
           !(r->device_part && r->device_part->memory);
}

uint64_t staged_announce(const struct p2p_request *r)
{
    return is_possible_to_peer(r) ? RTS_STAGED | (r->device ? RTS_GPU : 0) : 0;
}

bool staged_is_possible(const struct p2p_request *r, uint64_t can)
{
    return can & RTS_STAGED && (r->device || can & RTS_GPU) && r->base.bytes > 0 && is_possible_to_peer(r);
}

/* The offset in the message at which chunk i ends. */
static uint64_t chunk_end(const struct p2p_request *r, uint64_t i)
{
    return MIN(r->pieces.bytes, (i + 1) * DEVICE_CHUNK);
}

static size_t chunk_length(const struct p2p_request *r, uint64_t i)
{
    return (size_t)(chunk_end(r, i) - i * DEVICE_CHUNK);
}

/* False if the message ends before chunk i. */
static bool has_chunk(const struct p2p_request *r, uint64_t i)
{
    return i * DEVICE_CHUNK < r->pieces.bytes;
}

/* Allocates and registers the staging buffer. False: the message has to move in frames. */
static bool prepare_staging(struct p2p_request *r, uint64_t bytes)
{
    struct transport *t = r->peer->transport;
    r->pieces.bytes = bytes;
    if (device_pieces_begin(r, 0) != 0)
        return false;
    struct device_part *s = r->device_part;
    return s->is_registered = t->ops->mem_register(t, s->memory, GPU_STAGING_SIZE, &s->mem, &s->key) == 0;
}

/* ---- the sender ---- */

bool staged_accepts(const struct p2p_request *r, const struct cts_write *cts)
{
    const struct device_part *s = r->device_part;
    if (r->state == STATE_SEND_ANNOUNCED)
        return cts->offset == 0 && is_possible_to_peer(r);
    return s->granted < s->notified + HALVES && cts->offset == s->granted * DEVICE_CHUNK &&
           cts->cts.bytes == r->pieces.bytes - cts->offset;
}

void staged_requested(struct p2p_request *r, const struct cts_write *cts)
{
    if (r->state == STATE_SEND_STAGED) {
        r->device_part->granted++;
        device_watch(r);
        return;
    }
    request_unregister(r);
    r->peer_cookie = cts->cts.cookie;
    if (!prepare_staging(r, cts->cts.bytes)) {
        request_unpublish(r);
        r3_send_rest(r, r->peer_cookie, 0, cts->cts.bytes);
        return;
    }
    counter_add(&messages, 1);
    request_change_state(r, STATE_SEND_STAGED);
    r->device_part->remote = cts->address;
    r->device_part->remote_key = cts->key;
    r->device_part->granted = HALVES;
    device_watch(r);
}

static void send_written(struct p2p_request *r, uint64_t length, int status)
{
    struct frame_header h = {.kind = FRAME_WRITTEN, .aux = (uint16_t)status, .word = r->peer_cookie};
    control_send(r->base.p2p, r->peer, &h, &length, sizeof(length));
}

static void end_send(struct p2p_request *r)
{
    if (r->pieces.failed)
        send_written(r, 0, r->pieces.failed);
    request_unpublish(r);
    request_end(r, r->pieces.failed);
}

static void record_error(struct p2p_request *r, int rc)
{
    if (rc != ERR_AGAIN && !r->pieces.failed)
        r->pieces.failed = rc;
}

static void write_done(struct net_op *op, int status)
{
    struct staging_half *half = container_of(op, struct staging_half, write);
    struct p2p_request *r = half->r;
    half->is_writing = false;
    record_error(r, status);
    device_watch(r);
}

/* Starts to write chunk i, which has been copied. ERR_AGAIN: try again. */
static int write_chunk(struct p2p_request *r, uint64_t i)
{
    struct device_part *s = r->device_part;
    struct staging_half *half = &s->half[i % HALVES];
    half->r = r;
    half->write = (struct net_op){.done = write_done};
    half->is_writing = true;
    const int rc =
        r->peer->ops->put(r->peer, device_chunk_memory(s, i), &s->mem, s->remote + i % HALVES * DEVICE_CHUNK,
                          &s->remote_key, chunk_length(r, i), &half->write);
    if (rc)
        half->is_writing = false;
    else
        KILL_POINT(staged_written);
    return rc;
}

/* Does what can be done for a send; returns the number of steps. Copies precede writes, writes are announced in
 * order. An error ends the send after the last write, since the receiver frees its buffer then. */
static int progress_send(struct p2p_request *r)
{
    struct device_part *s = r->device_part;
    int steps = 0, rc = 0;
    for (uint64_t i = 0; i < HALVES; i++)
        record_error(r, device_chunk_poll(s, i));
    for (; s->notified < s->written && !s->half[s->notified % HALVES].is_writing && !r->pieces.failed;
         steps++) {
        send_written(r, chunk_end(r, s->notified++), 0);
        KILL_POINT(staged_announced);
    }
    for (; has_chunk(r, s->copied) && s->copied < s->notified + HALVES && !r->pieces.failed; steps++) {
        record_error(r, device_chunk_start(r, s->copied, chunk_length(r, s->copied), true));
        s->copied++;
    }
    for (; s->written < MIN(s->copied, s->granted) && !s->half[s->written % HALVES].is_copying &&
           !r->pieces.failed && (rc = write_chunk(r, s->written)) == 0;
         steps++)
        s->written++;
    record_error(r, rc);
    if (r->pieces.failed ? !s->half[0].is_writing && !s->half[1].is_writing : !has_chunk(r, s->notified)) {
        end_send(r);
        return 1;
    }
    if (steps == 0 && rc == 0 && !s->half[0].is_copying && !s->half[1].is_copying)
        device_unwatch(r); /* until a write is complete or a chunk is granted */
    return steps;
}

/* ---- the receiver ---- */

/* Lets the sender write chunk i and, with i = 0, the next one. */
static void grant_chunk(struct p2p_request *r, uint64_t i)
{
    const struct device_part *s = r->device_part;
    const uint64_t offset = i * DEVICE_CHUNK;
    struct frame_header header = {.kind = FRAME_CTS_WRITE, .flags = CTS_STAGED, .word = r->peer_cookie};
    struct cts_write cts = {.cts = {.cookie = r->cookie, .bytes = r->pieces.bytes - offset},
                            .address = (uintptr_t)s->memory,
                            .key = s->key,
                            .offset = offset};
    control_send(r->base.p2p, r->peer, &header, &cts, sizeof(cts));
    KILL_POINT(staged_granted);
}

bool staged_start(struct p2p_request *r, uint64_t bytes)
{
    if (!prepare_staging(r, bytes))
        return false;
    request_change_state(r, STATE_RECV_STAGED);
    grant_chunk(r, 0);
    return true;
}

void staged_written(struct p2p_request *r, uint64_t length, int error)
{
    struct device_part *s = r->device_part;
    if (error) {
        rendezvous_end_receive(r, error, false);
        return;
    }
    CHECK(s->arrived < s->stored + HALVES && has_chunk(r, s->arrived) && length == chunk_end(r, s->arrived),
          "a chunk of a message arrived that nobody waits for");
    s->arrived++;
    device_watch(r);
}

/* Does what can be done for a receive; returns the number of steps. After an error the chunks that still arrive
 * are dropped: the sender does not know of the error. */
static int progress_receive(struct p2p_request *r)
{
    struct device_part *s = r->device_part;
    int *failed = &r->pieces.failed, steps = 0, rc;
    for (; s->copied < s->arrived; s->copied++, steps++)
        if (*failed == 0)
            *failed = device_chunk_start(r, s->copied, chunk_length(r, s->copied), false);
    while (s->stored < s->copied && (rc = device_chunk_poll(s, s->stored)) != ERR_AGAIN) {
        *failed = *failed ? *failed : rc;
        s->stored++;
        steps++;
        KILL_POINT(staged_stored);
        if (has_chunk(r, s->stored + 1))
            grant_chunk(r, s->stored + 1);
    }
    if (!has_chunk(r, s->stored)) {
        /* an earlier MPI_ERR_TRUNCATE takes precedence */
        r->base.error = r->base.error ? r->base.error : *failed;
        rendezvous_end_receive(r, 0, false);
    } else if (s->stored == s->arrived) {
        device_unwatch(r);
    }
    return steps;
}

static int progress_staged(struct net_hook *hook)
{
    struct p2p *p = container_of(hook, struct p2p, staged_hook);
    int steps = 0;
    list_foreach_safe(pos, after, &p->staged)
    {
        struct p2p_request *r = list_entry(pos, struct device_part, link)->r;
        steps += r->state == STATE_SEND_STAGED ? progress_send(r) : progress_receive(r);
    }
    return steps;
}

void staged_open(struct p2p *p)
{
    list_init(&p->staged);
    list_init(&p->staged_hook.link);
    p->staged_hook.progress = progress_staged;
}
