/* frame_move.c: put and get by frames: for targets whose memory neither this processor nor an adapter can
 * reach in one piece. The target's progress engine copies the bytes. A put is complete at the origin when the
 * call returns, since frames hold copies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/rma.h"

static int put_start(const struct rma_call *c, struct win_peer *to, uint64_t offset)
{
    char *scratch = c->win->proc->rma->scratch;
    struct rma_run runs[RMA_RUNS_MAX];
    struct dt_cursor from, target;
    MPI_Aint gap;
    const size_t room = rma_chunk(to);
    const int max = dt_is_contiguous_block(c->type, c->count, &gap)
                        ? 1
                        : (int)MIN((size_t)RMA_RUNS_MAX, room / 2 / sizeof(runs[0]));
    int n;
    size_t bytes;
    dt_cursor_init(&from, c->origin.type, c->origin.count, c->origin.buf);
    dt_cursor_open(&target, c->type, c->count, (void *)(uintptr_t)offset);
    to->dirty = true;
    win_peer_mark_busy(to);
    while ((bytes = runs_collect_next(&target, room - (size_t)max * sizeof(runs[0]), max, runs, &n)) > 0) {
        dt_cursor_pack(&from, scratch, bytes);
        memcpy(scratch + bytes, runs, (size_t)n * sizeof(runs[0]));
        rma_send_throttled(to, RMA_PUT, 0, n, bytes, scratch, bytes + (size_t)n * sizeof(runs[0]));
    }
    if (from.error)
        return from.error;
    if (c->request)
        *c->request = p2p_completed_send_request(c->win->proc->p2p);
    return MPI_SUCCESS;
}

static int get_start(const struct rma_call *c, struct win_peer *to, uint64_t offset)
{
    struct {
        struct rma_result_request ask;
        struct rma_run runs[RMA_RUNS_MAX];
    } frame;
    struct rma_op *o;
    struct dt_cursor target;
    int rc = operation_create(c, &c->origin, to, &o), n;
    if (rc)
        return rc;
    const size_t room = rma_chunk(to) - sizeof(uint64_t);
    const int max = (int)MIN((size_t)RMA_RUNS_MAX, (room - sizeof(frame.ask)) / sizeof(frame.runs[0]));
    size_t bytes;
    dt_cursor_open(&target, c->type, c->count, (void *)(uintptr_t)offset);
    frame.ask = (struct rma_result_request){.cookie = o->cookie};
    while ((bytes = runs_collect_next(&target, room, max, frame.runs, &n)) > 0) {
        op_add_piece(o);
        rma_send_throttled(to, RMA_GET, 0, n, 0, &frame,
                           sizeof(frame.ask) + (size_t)n * sizeof(frame.runs[0]));
        frame.ask.position += bytes;
        op_wait_few_pending(to);
    }
    op_end_sending(o);
    return MPI_SUCCESS;
}

int frame_move_start(const struct rma_call *c, struct win_peer *to)
{
    const uint64_t offset =
        (uint64_t)(c->win->flavor == MPI_WIN_FLAVOR_DYNAMIC ? c->disp : c->disp * to->at.unit);
    return c->kind == RMA_IS_PUT ? put_start(c, to, offset) : get_start(c, to, offset);
}

/* Returns the address of one piece of a run. If the piece is outside of the window, records an error for the
 * origin and returns NULL. */
static char *run_piece_address(struct win *w, struct win_peer *from, const struct rma_run *run, uint64_t i)
{
    char *at = win_check_address(w, run->offset + i * run->stride, run->length);
    if (unlikely(!at))
        from->found = MPI_ERR_RMA_RANGE;
    return at;
}

void put_handle_frame(struct win *w, struct win_peer *from, const struct frame_header *h, const char *payload,
                      size_t len)
{
    struct rma_run run;
    CHECK(h->tag > 0 && h->word <= len && (len - h->word) / sizeof(run) >= (size_t)h->tag,
          "a put is shorter than its header states");
    const char *data = payload, *end = payload + h->word;
    for (int k = 0; k < h->tag; k++) {
        memcpy(&run, end + (size_t)k * sizeof(run), sizeof(run));
        CHECK(run.length > 0, "a put has pieces of no bytes");
        for (uint64_t i = 0; i < run.count; i++, data += run.length) {
            CHECK(run.length <= (size_t)(end - data), "a put is shorter than its header states");
            char *at = run_piece_address(w, from, &run, i);
            int rc = at ? window_copy(at, data, run.length) : 0;
            from->found = rc ? rc : from->found;
        }
    }
}

void get_handle_frame(struct win *w, struct win_peer *from, const struct frame_header *h, const char *payload,
                      size_t len)
{
    struct rma_result_request ask;
    struct rma_run run;
    char answer[RMA_CHUNK_MAX];
    size_t used = sizeof(ask.position);
    CHECK(len >= sizeof(ask) && h->tag >= 0 && (len - sizeof(ask)) / sizeof(run) >= (size_t)h->tag,
          "a get is shorter than its header states");
    memcpy(&ask, payload, sizeof(ask));
    memcpy(answer, &ask.position, sizeof(ask.position));
    for (int k = 0; k < h->tag; k++) {
        memcpy(&run, payload + sizeof(ask) + (size_t)k * sizeof(run), sizeof(run));
        CHECK(run.length > 0, "a get has pieces of no bytes");
        for (uint64_t i = 0; i < run.count; i++, used += run.length) {
            CHECK(run.length <= sizeof(answer) - used, "a get requests more than fits into an answer");
            const char *at = run_piece_address(w, from, &run, i);
            const int rc = at ? window_copy(answer + used, at, run.length) : MPI_ERR_RMA_RANGE;
            if (rc)
                memset(answer + used, 0, run.length);
            from->found = rc ? rc : from->found;
        }
    }
    rma_send(from, RMA_REPLY, 0, 0, ask.cookie, answer, used);
}
