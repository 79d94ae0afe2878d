/* reserve.c: executes the table of states and events of an adapter's reservation (reserve.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/rails/reserve.h"

/* Tests redefine these comparisons as the paper's tie-break and as the present counter, to show that the
 * exhaustive search of test_rails_reserve_all.c finds the errors of both. */
#ifndef RESERVE_TIE
#define RESERVE_TIE(local, remote) ((local) > (remote))
#endif
#ifndef RESERVE_COMPARED
#define RESERVE_COMPARED(n) ((n)->request_priority)
#endif

void reserve_set_user(struct reserve *n, uint32_t node, unsigned rail, unsigned bound)
{
    n->node = node;
    n->rail = (uint8_t)rail;
    n->bound = (int16_t)MIN(bound, FRAME_PRIORITY_MAX);
}

void reserve_open(struct reserve *n, uint32_t node, unsigned rail, unsigned bound)
{
    *n = (struct reserve){0};
    reserve_set_user(n, node, rail, bound);
}

static void reserve_add_frame(const struct reserve *n, struct reserve_out *out, enum frame_kind kind,
                              uint32_t to, uint32_t request)
{
    out->frame[out->frames++] = (struct frame){.kind = (uint8_t)kind,
                                               .rail = n->rail,
                                               .priority = kind == FRAME_RTS ? n->request_priority : 0,
                                               .from = n->node,
                                               .to = to,
                                               .request = request};
}

static void reserve_send(const struct reserve *n, struct reserve_out *out, enum reserve_local answer)
{
    if (n->given_up)
        return;
    out->answer = answer;
    out->request = n->request;
}

/* The request of this adapter was answered or withdrawn. */
static void reserve_clear_request(struct reserve *n)
{
    n->request = n->requested_from = 0;
    n->given_up = false;
}

static void reserve_clear_grant(struct reserve *n)
{
    n->grant = n->granted_to = 0;
}

static bool reserve_awaits_answer(const struct reserve *n)
{
    return n->state == RESERVE_RESERVED || n->state == RESERVE_RECEIVING_OUT;
}

static bool reserve_is_receiving(const struct reserve *n)
{
    return n->state == RESERVE_RECEIVING || n->state == RESERVE_RECEIVING_OUT;
}

/* The transfer of the sender that holds the grant is complete or withdrawn. */
static void reserve_end_receiving(struct reserve *n)
{
    n->state = n->state == RESERVE_RECEIVING_OUT ? RESERVE_RESERVED : RESERVE_FREE;
    reserve_clear_grant(n);
}

struct reserve_out reserve_local_rts(struct reserve *n, uint32_t request, uint32_t to)
{
    struct reserve_out out = {0};
    if (n->state != RESERVE_FREE) {
        out.answer = RESERVE_ANSWER_NACK;
        out.request = request;
        return out;
    }
    n->state = RESERVE_RESERVED;
    n->request = request;
    n->requester = n->node;
    n->requested_from = to;
    n->request_priority = n->priority;
    reserve_add_frame(n, &out, FRAME_RTS, to, request);
    return out;
}

struct reserve_out reserve_local_abort(struct reserve *n, uint32_t request)
{
    struct reserve_out out = {0};
    if (request == 0 || n->request != request) {
        out.stray = true;
    } else if (n->state == RESERVE_SENDING) {
        reserve_add_frame(n, &out, FRAME_ABORT, n->requested_from, request);
        n->state = RESERVE_FREE;
        reserve_clear_request(n);
    } else {
        n->given_up = true;
    }
    return out;
}

struct reserve_out reserve_local_ack(struct reserve *n)
{
    struct reserve_out out = {0};
    if (!reserve_is_receiving(n)) {
        out.stray = true;
        return out;
    }
    reserve_add_frame(n, &out, FRAME_ACK, n->granted_to, n->grant);
    reserve_end_receiving(n);
    return out;
}

static void reserve_grant(struct reserve *n, const struct frame *f, enum reserve_state next,
                          struct reserve_out *out)
{
    n->state = next;
    n->grant = f->request;
    n->granted_to = f->from;
    reserve_add_frame(n, out, FRAME_CTS, f->from, f->request);
}

/* Algorithm 4: whether the request of this adapter is stronger than the request that arrives. */
static bool reserve_local_wins(const struct reserve *n, const struct frame *f)
{
    if (n->given_up)
        return false;
    return RESERVE_COMPARED(n) > f->priority ||
           (RESERVE_COMPARED(n) == f->priority && RESERVE_TIE(n->requester, f->from));
}

static void reserve_on_rts(struct reserve *n, const struct frame *f, struct reserve_out *out)
{
    if (n->state == RESERVE_FREE) {
        reserve_grant(n, f, RESERVE_RECEIVING, out);
    } else if (n->state != RESERVE_RESERVED) {
        reserve_add_frame(n, out, FRAME_NACK, f->from, f->request);
    } else if (reserve_local_wins(n, f)) {
        n->priority = (int16_t)MAX(n->priority - 1, -n->bound);
        reserve_add_frame(n, out, FRAME_NACK, f->from, f->request);
    } else {
        n->priority = (int16_t)MIN(n->priority + 1, n->bound);
        reserve_grant(n, f, RESERVE_RECEIVING_OUT, out);
    }
}

static void reserve_on_cts(struct reserve *n, const struct frame *f, struct reserve_out *out)
{
    bool ours = reserve_awaits_answer(n) && n->request == f->request && n->requested_from == f->from;
    if (ours && n->state == RESERVE_RESERVED && !n->given_up) {
        n->state = RESERVE_SENDING;
        reserve_send(n, out, RESERVE_ANSWER_CTS);
        return;
    }
    reserve_add_frame(n, out, FRAME_ABORT, f->from, f->request);
    out->stray = !ours;
    if (!ours)
        return;
    reserve_send(n, out, RESERVE_ANSWER_NACK);
    n->state = n->state == RESERVE_RESERVED ? RESERVE_FREE : RESERVE_RECEIVING;
    reserve_clear_request(n);
}

static void reserve_on_nack(struct reserve *n, const struct frame *f, struct reserve_out *out)
{
    if (!reserve_awaits_answer(n) || n->request != f->request || n->requested_from != f->from) {
        out->stray = true;
        return;
    }
    reserve_send(n, out, RESERVE_ANSWER_NACK);
    n->state = n->state == RESERVE_RESERVED ? RESERVE_FREE : RESERVE_RECEIVING;
    reserve_clear_request(n);
}

struct reserve_out reserve_frame(struct reserve *n, const struct frame *f)
{
    struct reserve_out out = {0};
    switch (f->kind) {
    case FRAME_RTS:
        reserve_on_rts(n, f, &out);
        break;
    case FRAME_CTS:
        reserve_on_cts(n, f, &out);
        break;
    case FRAME_NACK:
        reserve_on_nack(n, f, &out);
        break;
    case FRAME_ABORT:
        if (reserve_is_receiving(n) && n->grant == f->request && n->granted_to == f->from)
            reserve_end_receiving(n);
        else
            out.stray = true;
        break;
    case FRAME_DONE:
        if (reserve_is_receiving(n) && n->grant == f->request && n->granted_to == f->from)
            out = reserve_local_ack(n);
        else
            out.stray = true;
        break;
    default:
        out.stray = n->state != RESERVE_SENDING || n->request != f->request || n->requested_from != f->from;
        if (out.stray)
            break;
        n->state = RESERVE_FREE;
        reserve_clear_request(n);
    }
    return out;
}

struct reserve_out reserve_release_peer(struct reserve *n, uint32_t peer)
{
    struct reserve_out out = {0};
    if (reserve_is_receiving(n) && n->granted_to == peer)
        reserve_end_receiving(n);
    if (n->request == 0 || n->requester != n->node || n->requested_from != peer)
        return out;
    reserve_send(n, &out, RESERVE_ANSWER_NACK);
    n->state = n->state == RESERVE_RECEIVING_OUT ? RESERVE_RECEIVING : RESERVE_FREE;
    reserve_clear_request(n);
    return out;
}
