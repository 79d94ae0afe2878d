/* exchange_client.c: the steps of a rank in two-phase access: sends the list of its pieces of each window
 * and sends or receives their data. Data that is one block of the user's memory is not copied.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "io/same_call.h"
#include "io/exchange.h"

void part_free(struct part *p)
{
    free(p->pieces);
    free(p->data);
    *p = (struct part){0};
}

static void part_add_piece(struct part *p, uint32_t at, uint32_t len, int64_t *room)
{
    if (p->head.pieces == *room) {
        *room = *room ? 2 * *room : 16;
        p->pieces = realloc(p->pieces, (size_t)*room * sizeof(*p->pieces));
        CHECK_MEMORY(p->pieces, "the pieces of a collective file operation");
    }
    p->pieces[p->head.pieces++] = (struct piece){at, len};
    p->head.bytes += len;
}

/* Lists this rank's pieces in [from, to), starting at *position in its stream, which is advanced. */
static void client_list_pieces(struct exchange *x, struct part *p, uint64_t *position, int64_t from,
                               int64_t to)
{
    const struct access *a = &x->op->access;
    struct view_walk w;
    int64_t room = 0, at = 0;
    uint64_t n;
    p->start = *position;
    view_walk_open(&w, &x->op->access.view, *position, a->start + a->length);
    while ((n = view_walk_next(&w, UINT64_MAX / 4, &at)) > 0 && at < to) {
        const uint64_t inside = MIN(n, (uint64_t)(to - at));
        part_add_piece(p, (uint32_t)(at - from), (uint32_t)inside, &room);
        *position += inside;
        if (inside < n)
            break;
    }
    if (p->head.pieces == 1)
        p->head.first = p->pieces[0].at;
}

/* Returns the address of the part's data: in the user's memory if that is one block, else in a buffer. */
static char *part_find_data(struct exchange *x, struct part *p)
{
    char *block;
    if (access_is_block(&x->op->access, &block))
        return block + (p->start - x->op->access.start);
    if (!p->data) {
        p->data = malloc((size_t)p->head.bytes);
        CHECK_MEMORY(p->data, "the data of a collective file operation");
    }
    return p->data;
}

static void seek_user_memory(const struct exchange *x, const struct part *p, struct dt_cursor *c)
{
    access_memory(&x->op->access, c);
    dt_cursor_seek(c, p->start - x->op->access.start);
}

static void client_send_part(struct exchange *x, struct client *c, int rank, struct part *p)
{
    struct flight *f = &c->flight;
    char *data = p->head.bytes ? part_find_data(x, p) : NULL;
    if (x->write && p->data) {
        struct dt_cursor memory;
        seek_user_memory(x, p, &memory);
        dt_cursor_pack(&memory, p->data, (size_t)p->head.bytes);
    }
    if (rank ==
        x->file->comm->rank) { /* server_access_window uses this part directly and decrements `pending` */
        f->pending++;
        return;
    }
    exchange_send(x, f, rank, MESSAGE_HEAD, &p->head, sizeof(p->head));
    if (p->head.pieces > 1)
        exchange_send(x, f, rank, MESSAGE_PIECES, p->pieces, (uint64_t)p->head.pieces * sizeof(*p->pieces));
    if (p->head.pieces == 0)
        return;
    if (x->write) {
        exchange_send(x, f, rank, MESSAGE_DATA, data, (uint64_t)p->head.bytes);
    } else {
        exchange_receive(x, f, rank, MESSAGE_ANSWER, &p->answer, sizeof(p->answer));
        exchange_receive(x, f, rank, MESSAGE_ANSWER_DATA, data, (uint64_t)p->head.bytes);
    }
}

void client_begin(struct exchange *x, struct client *c, int round)
{
    const int me = x->file->comm->rank;
    c->busy = true;
    for (int i = 0; i < x->aggregators; i++) {
        struct part *p = &c->parts[i];
        int64_t from, to;
        exchange_window(x, i, round, &from, &to);
        if (!exchange_needs_range(x, me, from, to))
            continue;
        p->active = true;
        if (x->domain == 0)
            x->position[i] = exchange_position(x, from);
        client_list_pieces(x, p, &x->position[i], from, to);
        client_send_part(x, c, x->file->aggregators[i], p);
    }
}

/* The number of bytes that were read for this part: aggregators send nothing from behind the end of the
 * file. */
static uint64_t count_bytes_read(const struct exchange *x, const struct part *p)
{
    const uint64_t bytes = (uint64_t)p->head.bytes;
    if (p->answer.end == INT64_MAX)
        return bytes;
    return view_offset_to_position(&x->op->access.view, p->start, p->start + bytes, p->answer.end) - p->start;
}

/* The round's messages are complete: records the aggregators' errors and unpacks the data that was read. */
void client_finish(struct exchange *x, struct client *c)
{
    for (int i = 0; i < x->aggregators; i++) {
        struct part *p = &c->parts[i];
        if (p->active && !x->write && p->head.pieces > 0) {
            exchange_record_error(x, agree_decode(p->answer.code, x->file->comm, x->file->name));
            x->end = MIN(x->end, p->answer.end);
            if (p->data) {
                struct dt_cursor memory;
                seek_user_memory(x, p, &memory);
                dt_cursor_unpack(&memory, p->data, (size_t)count_bytes_read(x, p));
            }
        }
        part_free(p);
    }
    c->busy = false;
}
