/* rendezvous_pipe.c: PIPE: a message whose memory is not registered yet is registered and written in pieces,
 * so that both sides register at the same time, and pieces move meanwhile (as the pipeline of [Shipman06
 * 4.3]; pipe_policy.h computes the number of pieces).
 *
 *     sender                         receiver
 *       RTS (no address) --------------> match; register a piece
 *       <------------- CTS_WRITE (pipe)  address and key of the piece; register the next
 *       register, write ===============>
 *       <------- CTS_WRITE (pipe, last)
 *       register, write ===============>
 *       WRITTEN -----------------------> complete
 *     complete when the writes are done
 *
 * A piece that one of the two sides cannot register ends the pipeline: WRITTEN carries the length written so
 * far, and the rest is sent in frames, as R3.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/p2p/pipe_policy.h"
#include "p2p/rendezvous.h"
#include "p2p/protocol.h"

static COUNTER(pipes, "p2p_rendezvous_pipe",
               "Large messages whose memory was registered piece by piece while earlier pieces moved.");
static COUNTER(
    cut, "p2p_rendezvous_pipe_cut",
    "Large messages (of p2p_rendezvous_pipe) of which a piece could not be registered; the rest was copied.");

struct pipe_piece {
    struct net_op op;
    struct pipe *pipe;
    struct net_mem mem;
    uint64_t remote, from, bytes;
    struct net_key key;
    bool registered;  /* `mem` is a registration of this piece */
    bool unreachable; /* the receiver could not register the piece */
};

/* Pieces in message order: the receiver has requested the first `requested` pieces, the sender has begun
 * to write the first `started` pieces. */
struct pipe {
    struct p2p_request *r;
    struct pipe_piece pieces[PIPE_PIECES];
    uint32_t requested, started, under_way;
    int status;
    bool queued;   /* on peer->pending because the transport was out of resources */
    bool starting; /* the loop that starts pieces is running */
};

static struct pipe *pipe_new(struct p2p *p, struct p2p_request *r)
{
    if (p->pipes.item_size == 0)
        pool_init(&p->pipes, sizeof(struct pipe), 4);
    struct pipe *pipe = pool_get(&p->pipes);
    if (!pipe)
        return NULL;
    pipe->r = r;
    pipe->requested = pipe->started = pipe->under_way = 0;
    pipe->status = 0;
    pipe->queued = pipe->starting = false;
    return pipe;
}

static bool piece_register(struct p2p_request *r, struct pipe_piece *piece, struct net_key *key)
{
    struct transport *t = r->peer->transport;
    piece->registered =
        t->ops->mem_register_piece(t, r->buf + piece->from, (size_t)piece->bytes, &piece->mem, key) == 0;
    return piece->registered;
}

static void piece_release(const struct p2p_request *r, struct pipe_piece *piece)
{
    if (piece->registered)
        r->peer->transport->ops->mem_release(r->peer->transport, &piece->mem);
    piece->registered = false;
}

static void pipe_free(struct p2p_request *r)
{
    struct pipe *pipe = r->pipe.pipe;
    for (uint32_t i = 0; pipe && i < pipe->requested; i++)
        piece_release(r, &pipe->pieces[i]);
    if (pipe)
        pool_put(&r->base.p2p->pipes, pipe);
    r->pipe.pipe = NULL;
}

/* ---- the receiver registers pieces and sends their addresses ---- */

static void piece_send_request(struct p2p *p, struct p2p_request *r, const struct pipe_piece *piece,
                               struct net_key key)
{
    const bool last = piece->from + piece->bytes == r->pipe.bytes;
    struct frame_header header = {
        .kind = FRAME_CTS_WRITE,
        .flags = (uint8_t)(CTS_PIPE | (last ? CTS_LAST : 0) | (piece->unreachable ? CTS_UNREACHABLE : 0)),
        .word = r->peer_cookie};
    struct cts_write cts = {.cts = {.cookie = r->cookie, .bytes = piece->bytes},
                            .address = (uintptr_t)r->buf + piece->from,
                            .key = key,
                            .offset = piece->from};
    control_send(p, r->peer, &header, &cts, sizeof(cts));
}

/* Prepares the next piece of the receive and registers it unless the whole receive is registered. If a
 * piece cannot be registered, it covers the rest of the message and ends the pipeline. */
static struct pipe_piece *pipe_prepare_piece(struct p2p_request *r, uint64_t from, uint64_t bytes,
                                             struct net_key *key)
{
    struct pipe_piece *piece = &r->pipe.pipe->pieces[r->pipe.pipe->requested++];
    *piece =
        (struct pipe_piece){.pipe = r->pipe.pipe, .from = from, .bytes = MIN(bytes, r->pipe.bytes - from)};
    *key = r->key;
    if (!r->registered && !piece_register(r, piece, key)) {
        piece->unreachable = true;
        piece->bytes = r->pipe.bytes - from;
        *key = (struct net_key){{0}};
    }
    return piece;
}

static uint64_t pipe_propose(const struct p2p_request *r, uint64_t bytes)
{
    const struct net_pin *pin = &r->peer->transport->pin;
    const uint64_t best = pipe_piece_bytes(bytes, pin->base_ns, pin->unit_ns);
    return best ? best : pipe_piece_forced(bytes);
}

/* Uses the sender's proposal, limited to PIPE_PIECES pieces. */
static uint64_t pipe_choose_piece(const struct p2p_request *r, const struct rts *rts, uint64_t bytes)
{
    const uint64_t wanted = rts->address == 0 || rts->address > bytes ? pipe_propose(r, bytes) : rts->address;
    return MAX(wanted, (bytes + PIPE_PIECES - 1) / PIPE_PIECES);
}

static void pipe_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes)
{
    const uint64_t size = pipe_choose_piece(r, rts, bytes);
    struct net_key key;
    r->pipe = (struct pipe_part){.pipe = pipe_new(p, r), .bytes = bytes};
    if (!r->pipe.pipe) {
        protocol_fall_back(p, r, bytes);
        return;
    }
    struct pipe_piece *piece = pipe_prepare_piece(r, 0, size, &key);
    if (piece->unreachable || !request_publish(r)) {
        const bool refuse = !piece->unreachable;
        pipe_free(r);
        if (refuse) {
            rendezvous_end_receive(r, err_set(MPI_ERR_NO_MEM, "out of memory for a large receive"), true);
        } else {
            err_clear();
            protocol_fall_back(p, r, bytes);
        }
        return;
    }
    counter_add(&pipes, 1);
    request_change_state(r, STATE_RECV_PIPE);
    piece_send_request(p, r, piece, key);
    for (uint64_t at = piece->bytes; at < bytes; at += piece->bytes) {
        piece = pipe_prepare_piece(r, at, size, &key);
        piece_send_request(p, r, piece, key);
    }
}

/* Handles WRITTEN: the sender has written the first `length` bytes; frames will deliver the remaining
 * bytes. */
static void pipe_on_written(struct p2p_request *r, uint64_t length, int error)
{
    const uint64_t bytes = r->pipe.bytes;
    CHECK(error != 0 || length <= bytes, "more of a message was written than was requested");
    pipe_free(r);
    request_unregister(r);
    if (error == 0 && length < bytes) {
        r3_receive_rest(r, length, bytes);
        return;
    }
    protocol_end(r, error);
    request_unpublish(r);
    request_end(r, error ? error : r->base.error);
}

/* ---- the sender registers and writes ---- */

static void pipe_send_end(struct p2p_request *r, uint64_t length, int status)
{
    struct frame_header h = {.kind = FRAME_WRITTEN, .aux = (uint16_t)status, .word = r->peer_cookie};
    control_send_first(r->base.p2p, r->peer, &h, &length, sizeof(length));
}

static void sender_complete(struct p2p_request *r, int status)
{
    pipe_free(r);
    request_unregister(r);
    request_end(r, status);
}

/* Ends the pipeline after its last write: completes the send or sends the rest in frames. */
static void sender_end_pipeline(struct p2p_request *r, uint64_t written, int status)
{
    if (status != 0 || (written == r->pipe.bytes && !r->pipe.notified))
        pipe_send_end(r, written, status);
    if (status != 0 || written == r->pipe.bytes) {
        sender_complete(r, status);
        return;
    }
    const uint64_t bytes = r->pipe.bytes;
    counter_add(&cut, 1);
    pipe_send_end(r, written, 0);
    pipe_free(r);
    request_unregister(r);
    r3_send_rest(r, r->peer_cookie, written, bytes);
}

static void sender_check_end(struct p2p_request *r)
{
    struct pipe *pipe = r->pipe.pipe;
    if (!r->pipe.last || (pipe && (pipe->queued || pipe->starting)))
        return;
    const int status = pipe ? pipe->status : 0;
    const uint64_t written = !pipe                             ? 0
                             : pipe->started < pipe->requested ? pipe->pieces[pipe->started].from
                                                               : r->pipe.bytes;
    request_unpublish(r);
    if (status == 0 && written == r->pipe.bytes && r->peer->caps.put_ordered && !r->pipe.notified) {
        r->pipe.notified = true; /* ordered puts: WRITTEN arrives after the data */
        pipe_send_end(r, written, 0);
    }
    if (!pipe || pipe->under_way == 0)
        sender_end_pipeline(r, written, status);
}

static void piece_written(struct net_op *op, int status)
{
    struct pipe_piece *piece = container_of(op, struct pipe_piece, op);
    struct pipe *pipe = piece->pipe;
    struct p2p_request *r = pipe->r;
    piece_release(r, piece);
    pipe->under_way--;
    if (status != 0 && pipe->status == 0)
        pipe->status = status;
    if (!pipe->starting)
        sender_check_end(r);
}

static int piece_write(struct p2p_request *r, struct pipe_piece *piece)
{
    struct net_key mine;
    struct pipe *pipe = piece->pipe;
    if (piece->unreachable || (!r->registered && !piece->registered && !piece_register(r, piece, &mine)))
        return MPI_ERR_BUFFER;
    piece->op = (struct net_op){.done = piece_written};
    pipe->started++;
    pipe->under_way++;
    int rc = r->peer->ops->put(r->peer, r->buf + piece->from, r->registered ? &r->mem : &piece->mem,
                               piece->remote, &piece->key, (size_t)piece->bytes, &piece->op);
    if (rc == 0)
        return 0;
    pipe->started--;
    pipe->under_way--;
    if (rc != ERR_AGAIN)
        pipe->status = rc;
    return rc;
}

/* Starts as many pieces as possible; ERR_AGAIN: the transport is out of resources. */
static int pipe_write_pieces(struct p2p_request *r)
{
    struct pipe *pipe = r->pipe.pipe;
    int rc = 0;
    if (pipe) {
        pipe->starting = true;
        while (rc == 0 && pipe->status == 0 && pipe->started < pipe->requested)
            rc = piece_write(r, &pipe->pieces[pipe->started]);
        pipe->starting = false;
        pipe->queued = rc == ERR_AGAIN;
    }
    if (rc != ERR_AGAIN) {
        err_clear(); /* pieces that cannot be registered are copied */
        sender_check_end(r);
    }
    return rc;
}

static int pipe_resume(struct net_pending *item)
{
    return pipe_write_pieces(container_of(item, struct p2p_request, pending)) == ERR_AGAIN ? ERR_AGAIN : 0;
}

static void pipe_on_request(struct p2p_request *r, const struct cts_write *cts, uint8_t flags)
{
    struct p2p *p = r->base.p2p;
    if (r->state == STATE_SEND_ANNOUNCED) {
        request_change_state(r, STATE_SEND_PIPE);
        /* without memory for the pieces the whole message is copied */
        r->pipe = (struct pipe_part){.pipe = pipe_new(p, r)};
        r->peer_cookie = cts->cts.cookie;
    }
    struct pipe *pipe = r->pipe.pipe;
    CHECK(!r->pipe.last && cts->offset == r->pipe.bytes && (!pipe || pipe->requested < PIPE_PIECES),
          "a piece of a message was requested twice, or out of order");
    r->pipe.bytes += cts->cts.bytes;
    r->pipe.last = flags & CTS_LAST;
    if (pipe)
        pipe->pieces[pipe->requested++] = (struct pipe_piece){.pipe = pipe,
                                                              .remote = cts->address,
                                                              .key = cts->key,
                                                              .from = cts->offset,
                                                              .bytes = cts->cts.bytes,
                                                              .unreachable = flags & CTS_UNREACHABLE};
    if ((pipe && pipe->queued) || pipe_write_pieces(r) != ERR_AGAIN)
        return;
    r->pending.resume = pipe_resume;
    peer_queue(r->peer, &r->pending);
}

const struct pipe_protocol laboratory_pipe = {.propose = pipe_propose,
                                              .start = pipe_start,
                                              .requested = pipe_on_request,
                                              .written = pipe_on_written,
                                              .drop = pipe_free};
