/* accumulate.c: accumulate, get_accumulate, fetch_and_op and compare_and_swap. The target's datatype is
 * walked by runs of one predefined type. The origin changes a run itself if it can access the memory;
 * otherwise it sends a frame, and the target's progress engine changes the run. Elements are sent in the
 * layout of their predefined type, gaps included, because operators need it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/build.h"
#include "dt/kernel.h"
#include "dt/kind.h"
#include "dt/walk.h"
#include "rma/rma.h"

#define PIECE 4096u /* size in bytes of the buffers for one batch of elements */

/* Encodes the element type for a frame: the kind of a named type, or the kinds of both members of an unnamed
 * pair type. */
static uint16_t element_code(const struct dtype *basic)
{
    if (basic->kind != KIND_MIXED)
        return basic->kind;
    return (uint16_t)(basic->shape->part[0].type->kind | basic->shape->part[1].type->kind << 8);
}

static struct dtype *decode_element_type(uint16_t code)
{
    const uint8_t first = code & 0xff, second = (uint8_t)(code >> 8);
    CHECK(first > KIND_MIXED && first < KIND_LIMIT && second < KIND_LIMIT,
          "an accumulate names a type that does not exist");
    struct dtype *t = dt_predefined(dt_kinds[first].handle);
    if (second && dtype_value_index(t, dt_predefined(dt_kinds[second].handle), &t) != 0)
        t = NULL;
    CHECK(t != NULL, "an accumulate names a type that does not exist");
    return t;
}

/* Copies the next n elements of packed data to `out`, in the layout of their type. */
static void elements_unpack(struct dt_cursor *from, struct dtype *basic, size_t n, char *out)
{
    char packed[PIECE];
    const size_t bytes = n * (size_t)basic->size;
    if (basic->contiguous) {
        dt_cursor_pack(from, out, bytes);
        return;
    }
    memset(out, 0, n * (size_t)basic->extent);
    dt_cursor_pack(from, packed, bytes);
    dt_unpack_all(basic, (MPI_Count)n, out, packed, bytes);
}

static const void *elements_get_packed(struct dtype *basic, size_t n, const char *elements, char *packed)
{
    if (basic->contiguous)
        return elements;
    dt_pack_all(basic, (MPI_Count)n, elements, packed);
    return packed;
}

/* ---- the target's memory is here ---- */

struct direct {
    const struct rma_call *call;
    struct win_peer *to;
    struct dt_cursor from, into;
    bool takes, gives; /* the operator has an operand; the origin gets the old value */
};

static int direct_visit_run(void *context, struct dtype *basic, MPI_Count count, char *address)
{
    struct direct *d = context;
    const size_t most = PIECE / (size_t)basic->extent;
    char in[PIECE], old[PIECE], packed[PIECE];
    for (size_t left = (size_t)count; left > 0;) {
        const size_t n = MIN(left, most);
        if (d->takes)
            elements_unpack(&d->from, basic, n, in);
        int rc =
            win_apply(d->call->win, d->to->slot, d->call->op, basic, in, address, d->gives ? old : NULL, n);
        if (rc)
            return rc;
        if (d->gives)
            dt_cursor_unpack(&d->into, elements_get_packed(basic, n, old, packed), n * (size_t)basic->size);
        address += n * (size_t)basic->extent;
        left -= n;
    }
    return 0;
}

bool accumulate_is_unpacked(const struct rma_call *c)
{
    const bool takes = c->op->code != OP_NO_OP, gives = c->kind == RMA_IS_GET_ACCUMULATE;
    return c->type->obj.predefined && c->type->contiguous && (!takes || c->origin.type == c->type) &&
           (!gives || c->result.type == c->type);
}

int accumulate_direct(const struct rma_call *c, struct win_peer *to, char *at)
{
    const bool takes = c->op->code != OP_NO_OP, gives = c->kind == RMA_IS_GET_ACCUMULATE;
    if (accumulate_is_unpacked(c))
        return win_apply(c->win, to->slot, c->op, c->type, c->origin.buf, at, gives ? c->result.buf : NULL,
                         (size_t)c->count);
    struct direct d = {.call = c, .to = to, .takes = takes, .gives = gives};
    if (d.takes)
        dt_cursor_init(&d.from, c->origin.type, c->origin.count, c->origin.buf);
    if (d.gives)
        dt_cursor_init(&d.into, c->result.type, c->result.count, c->result.buf);
    return dt_walk(c->type, c->count, at, WALK_PREDEFINED, direct_visit_run, &d);
}

/* ---- by frames: the origin ---- */

struct frames {
    const struct rma_call *call;
    struct win_peer *to;
    struct dt_cursor from;
    struct rma_op *op; /* NULL: no result is returned */
    struct rma_result_request ask;
    struct dtype *basic; /* element type of the frame that is being filled */
    struct rma_span spans[RMA_RUNS_MAX];
    int nspans, max;
    size_t used, room; /* bytes of elements in the frame: present and maximal */
    size_t elements;
    bool takes;
};

/* Returns the address in the scratch buffer at which elements start. A struct rma_result_request precedes them if the
 * frame requests a result. */
static char *frame_data(const struct frames *f)
{
    return f->call->win->proc->rma->scratch + (f->op ? sizeof(f->ask) : 0);
}

static void frame_send(struct frames *f)
{
    char *scratch = f->call->win->proc->rma->scratch, *data = frame_data(f);
    const size_t spans = (size_t)f->nspans * sizeof(f->spans[0]), bytes = f->takes ? f->used : 0;
    if (f->nspans == 0)
        return;
    if (f->op) {
        memcpy(scratch, &f->ask, sizeof(f->ask));
        f->ask.position += f->elements * (uint64_t)f->basic->size;
        op_add_piece(f->op);
    }
    memcpy(data + bytes, f->spans, spans);
    f->nspans = 0;
    f->used = f->elements = 0;
    rma_send_throttled(f->to, f->op ? RMA_GET_ACC : RMA_ACC, element_code(f->basic),
                       (int32_t)(spans / sizeof(f->spans[0])) | f->call->op->code << 24, bytes, scratch,
                       (size_t)(data - scratch) + bytes + spans);
    if (f->op)
        op_wait_few_pending(f->to);
}

static int frames_run(void *context, struct dtype *basic, MPI_Count count, char *address)
{
    struct frames *f = context;
    const size_t extent = (size_t)basic->extent;
    if (f->basic != basic)
        frame_send(f);
    f->basic = basic;
    for (size_t left = (size_t)count; left > 0;) {
        if (f->nspans == f->max || f->used + extent > f->room)
            frame_send(f);
        const size_t n = MIN(MIN(left, (f->room - f->used) / extent), PIECE / extent);
        if (f->takes)
            elements_unpack(&f->from, basic, n, frame_data(f) + f->used);
        struct rma_span *last = f->nspans ? &f->spans[f->nspans - 1] : NULL;
        const uint64_t offset = (uint64_t)(uintptr_t)address;
        if (last && last->offset + last->count * extent == offset)
            last->count += n;
        else
            f->spans[f->nspans++] = (struct rma_span){.offset = offset, .count = n};
        f->used += n * extent;
        f->elements += n;
        address += n * extent;
        left -= n;
    }
    return 0;
}

static uint64_t target_offset(const struct rma_call *c, const struct win_peer *to)
{
    return (uint64_t)(c->win->flavor == MPI_WIN_FLAVOR_DYNAMIC ? c->disp : c->disp * to->at.unit);
}

/* True if the target's reply confirms completion, so that no flush is needed. Accumulates have no reply; in a
 * dynamic window only a flush reports the errors that the target detects. */
static bool confirms_completion(const struct rma_call *c)
{
    return c->kind != RMA_IS_ACCUMULATE && c->win->flavor != MPI_WIN_FLAVOR_DYNAMIC;
}

int accumulate_start(const struct rma_call *c, struct win_peer *to)
{
    struct frames f = {.call = c, .to = to, .takes = c->op->code != OP_NO_OP};
    const bool gives = c->kind == RMA_IS_GET_ACCUMULATE;
    if (gives) {
        int rc = operation_create(c, &c->result, to, &f.op);
        if (rc)
            return rc;
        f.ask.cookie = f.op->cookie;
    } else if (c->request) {
        *c->request = p2p_completed_send_request(c->win->proc->p2p);
    }
    const size_t chunk = rma_chunk(to) - sizeof(struct rma_result_request);
    f.max = (int)MIN((size_t)RMA_RUNS_MAX, MAX(chunk / 4 / sizeof(f.spans[0]), 1));
    f.room = chunk - (size_t)f.max * sizeof(f.spans[0]);
    if (f.takes)
        dt_cursor_init(&f.from, c->origin.type, c->origin.count, c->origin.buf);
    to->dirty |= !confirms_completion(c);
    win_peer_mark_busy(to);
    dt_walk(c->type, c->count, (void *)(uintptr_t)target_offset(c, to), WALK_PREDEFINED, frames_run, &f);
    frame_send(&f);
    if (f.op)
        op_end_sending(f.op);
    return MPI_SUCCESS;
}

/* ---- by frames: the target ---- */

/* Applies the operation to one span of elements. Returns false if the span is outside the window or cannot be
 * changed. */
static bool span_apply_operation(struct win *w, struct win_peer *from, const struct op *op,
                                 struct dtype *basic, const struct rma_span *span, const char *in, char *old)
{
    const uint64_t extent = (uint64_t)basic->extent;
    char *at =
        span->count <= RMA_CHUNK_MAX
            ? win_check_address(w, span->offset, (span->count - 1) * extent + (uint64_t)basic->true_extent)
            : NULL;
    if (!at) {
        from->found = MPI_ERR_RMA_RANGE;
        return false;
    }
    int rc = win_apply(w, w->my_slot, op, basic, in, at, old, (size_t)span->count);
    from->found = rc ? rc : from->found;
    return rc == MPI_SUCCESS;
}

void accumulate_handle_frame(struct win *w, struct win_peer *from, const struct frame_header *h,
                             const char *payload, size_t len)
{
    struct dtype *basic = decode_element_type(h->aux);
    const struct op *op = NULL;
    for (uint32_t i = 0; i < OP_HANDLES && !op; i++)
        if (op_by_handle[i].handle && op_by_handle[i].code == h->tag >> 24)
            op = &op_by_handle[i];
    const size_t n = h->tag & 0xffffff,
                 head = h->flags == RMA_GET_ACC ? sizeof(struct rma_result_request) : 0;
    CHECK(op && n > 0 && head <= len && h->word <= len - head &&
              (len - head - h->word) / sizeof(struct rma_span) >= n,
          "an accumulate frame is inconsistent");
    CHECK(op->code == OP_NO_OP || op->code == OP_REPLACE || op_check(op, basic) == 0,
          "an accumulate has an operator that its type does not have");
    const bool takes = op->code != OP_NO_OP;
    const char *in = payload + head, *end = in + h->word;
    struct rma_result_request ask = {0};
    _Alignas(16) char old[RMA_CHUNK_MAX], answer[RMA_CHUNK_MAX + sizeof(ask.position)];
    size_t used = sizeof(ask.position);
    if (head)
        memcpy(&ask, payload, sizeof(ask));
    for (size_t k = 0; k < n; k++) {
        struct rma_span span;
        memcpy(&span, end + k * sizeof(span), sizeof(span));
        const uint64_t room = takes ? (uint64_t)(end - in) : sizeof(old);
        const uint64_t bytes = span.count * (uint64_t)basic->extent;
        CHECK(span.count > 0 && span.count <= room / (uint64_t)basic->extent &&
                  span.count * (uint64_t)basic->size <= sizeof(answer) - used,
              "an accumulate is longer than its frame");
        if (!span_apply_operation(w, from, op, basic, &span, in, head ? old : NULL))
            memset(old, 0, head ? bytes : 0);
        if (head)
            dt_pack_all(basic, (MPI_Count)span.count, old, answer + used);
        used += head ? (size_t)span.count * (size_t)basic->size : 0;
        in += takes ? bytes : 0;
    }
    if (head) {
        memcpy(answer, &ask.position, sizeof(ask.position));
        rma_send(from, RMA_REPLY, 0, 0, ask.cookie, answer, used);
    }
}

/* ---- compare and swap ---- */

int swap_start(const struct rma_call *c, struct win_peer *to)
{
    struct {
        struct rma_result_request ask;
        struct rma_swap swap;
    } frame;
    struct rma_op *o;
    int rc = operation_create(c, &c->result, to, &o);
    if (rc)
        return rc;
    memset(&frame, 0, sizeof(frame));
    frame.ask.cookie = o->cookie;
    frame.swap.offset = target_offset(c, to);
    memcpy(frame.swap.value, c->origin.buf, (size_t)c->type->size);
    memcpy(frame.swap.compare, c->compare, (size_t)c->type->size);
    to->dirty |= !confirms_completion(c);
    op_add_piece(o);
    rma_send_throttled(to, RMA_SWAP, element_code(c->type), 0, 0, &frame, sizeof(frame));
    op_wait_few_pending(to);
    op_end_sending(o);
    return MPI_SUCCESS;
}

void swap_handle_frame(struct win *w, struct win_peer *from, const struct frame_header *h,
                       const char *payload, size_t len)
{
    struct rma_result_request ask;
    struct rma_swap swap;
    char answer[sizeof(ask.position) + sizeof(swap.value)] = {0};
    struct dtype *basic = decode_element_type(h->aux);
    CHECK(len == sizeof(ask) + sizeof(swap) && (size_t)basic->size <= sizeof(swap.value) && basic->contiguous,
          "a compare-and-swap frame is inconsistent");
    memcpy(&ask, payload, sizeof(ask));
    memcpy(&swap, payload + sizeof(ask), sizeof(swap));
    char *at = win_check_address(w, swap.offset, (uint64_t)basic->size);
    int rc = MPI_ERR_RMA_RANGE;
    if (at)
        rc = win_swap(w, w->my_slot, basic, swap.value, swap.compare, at, answer + sizeof(ask.position));
    from->found = rc ? rc : from->found;
    memcpy(answer, &ask.position, sizeof(ask.position));
    rma_send(from, RMA_REPLY, 0, 0, ask.cookie, answer, sizeof(ask.position) + (size_t)basic->size);
}
