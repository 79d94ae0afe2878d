/* exchange_server.c: the steps of an aggregator in two-phase access: receives the pieces of a window from
 * all ranks and writes the bytes that they cover, or reads the window and sends the pieces.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "io/same_call.h"
#include "io/exchange.h"
#include "io/posix.h"

static char *server_window(const struct exchange *x, const struct server *s)
{
    return x->buffers->window[s->round % SLOTS];
}

/* The part of this aggregator as a client of its own window. */
static struct part *server_own_part(struct exchange *x, const struct server *s)
{
    return &x->clients[s->round % SLOTS].parts[x->me];
}

void server_receive_heads(struct exchange *x, struct server *s, int round)
{
    const struct comm *c = x->file->comm;
    int64_t from, to;
    s->busy = true;
    s->draining = false;
    s->round = round;
    exchange_window(x, x->me, round, &from, &to);
    for (int r = 0; r < c->size; r++) {
        s->parts[r].active = exchange_needs_range(x, r, from, to);
        if (s->parts[r].active && r != c->rank)
            exchange_receive(x, &s->heads, r, MESSAGE_HEAD, &s->parts[r].head, sizeof(struct head));
    }
}

static void *server_allocate(size_t size)
{
    void *memory = malloc(size);
    CHECK_MEMORY(memory, "the data of a collective file operation");
    return memory;
}

void server_receive_bodies(struct exchange *x, struct server *s)
{
    const struct comm *c = x->file->comm;
    for (int r = 0; r < c->size; r++) {
        struct part *p = &s->parts[r];
        if (!p->active || r == c->rank || p->head.pieces == 0)
            continue;
        CHECK(p->head.pieces > 0 && p->head.bytes > 0 && p->head.bytes <= x->window &&
                  p->head.pieces <= p->head.bytes && p->head.first >= 0 &&
                  p->head.first <= x->window - p->head.bytes,
              "a rank sent an invalid request of a collective file operation");
        p->pieces = server_allocate((size_t)p->head.pieces * sizeof(*p->pieces));
        p->pieces[0] = (struct piece){(uint32_t)p->head.first, (uint32_t)p->head.bytes};
        if (p->head.pieces > 1)
            exchange_receive(x, &s->bodies, r, MESSAGE_PIECES, p->pieces,
                             (uint64_t)p->head.pieces * sizeof(*p->pieces));
        if (!x->write)
            continue;
        char *to = server_window(x, s) + p->head.first;
        if (p->head.pieces > 1)
            to = p->data = server_allocate((size_t)p->head.bytes);
        exchange_receive(x, &s->bodies, r, MESSAGE_DATA, to, (uint64_t)p->head.bytes);
    }
}

/* Checks the pieces that a rank sent: they lie in the window, and have as many bytes as the rank announced. */
static void server_check_pieces(const struct exchange *x, const struct part *p)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < p->head.pieces; i++) {
        CHECK((int64_t)p->pieces[i].at + p->pieces[i].len <= x->window,
              "a rank sent a piece of a collective file operation that is outside its window");
        bytes += p->pieces[i].len;
    }
    CHECK(bytes == p->head.bytes, "a rank sent pieces of a collective file operation with a wrong length");
}

static void server_mark_bits(uint64_t *bits, uint32_t from, uint32_t len)
{
    const uint32_t to = from + len, first = from / 64, last = (to - 1) / 64;
    const uint64_t head = ~(uint64_t)0 << from % 64, tail = ~(uint64_t)0 >> (63 - (to - 1) % 64);
    if (first == last) {
        bits[first] |= head & tail;
        return;
    }
    bits[first] |= head;
    memset(bits + first + 1, 0xff, (last - first - 1) * sizeof(*bits));
    bits[last] |= tail;
}

/* Returns the index of the first set (or clear) bit at or after `at`; `limit` if there is none. */
static uint32_t next_bit(const uint64_t *bits, uint32_t at, uint32_t limit, bool set)
{
    while (at < limit) {
        const uint64_t word = (set ? bits[at / 64] : ~bits[at / 64]) >> at % 64;
        if (word)
            return MIN(at + (uint32_t)__builtin_ctzll(word), limit);
        at = (at / 64 + 1) * 64;
    }
    return limit;
}

/* Copies a rank's data into the window (`data` NULL: received there already) and marks it as filled. */
static void server_place_data(struct exchange *x, const struct server *s, const struct part *p,
                              const char *data)
{
    server_check_pieces(x, p);
    for (int64_t i = 0; i < p->head.pieces; i++) {
        const struct piece *piece = &p->pieces[i];
        if (piece->len == 0)
            continue;
        if (data) {
            memcpy(server_window(x, s) + piece->at, data, piece->len);
            data += piece->len;
        }
        server_mark_bits(x->buffers->filled, piece->at, piece->len);
    }
}

static const char *server_own_data(struct exchange *x, const struct part *p)
{
    char *block;
    if (p->data)
        return p->data;
    access_is_block(&x->op->access, &block);
    return block + (p->start - x->op->access.start);
}

static void write_window(struct exchange *x, struct server *s)
{
    const struct comm *c = x->file->comm;
    int64_t from, to;
    exchange_window(x, x->me, s->round, &from, &to);
    /* After an error the window may lack data of a rank that died. */
    if (from >= to || x->error)
        return;
    const uint32_t limit = (uint32_t)(to - from);
    uint64_t *filled = x->buffers->filled;
    memset(filled, 0, limit / 8 + 8);
    for (int r = 0; r < c->size; r++) {
        const struct part *p = r == c->rank ? server_own_part(x, s) : &s->parts[r];
        if (s->parts[r].active && p->head.pieces > 0)
            server_place_data(x, s, p, r == c->rank ? server_own_data(x, p) : p->data);
    }
    bool held;
    int rc = posix_guard_range(x->file, false, from, to - from, &held);
    for (uint32_t at = next_bit(filled, 0, limit, true); at < limit && !rc;) {
        const uint32_t end = next_bit(filled, at, limit, false);
        size_t done;
        rc = posix_transfer(x->file, true, server_window(x, s) + at, end - at, from + at, &done);
        at = next_bit(filled, end, limit, true);
    }
    if (held)
        posix_unlock(x->file, from, to - from);
    exchange_record_error(x, rc);
}

/* The range of the window that contains the pieces of all ranks. */
static void server_wanted_range(struct exchange *x, struct server *s, uint32_t *low, uint32_t *high)
{
    const struct comm *c = x->file->comm;
    *low = UINT32_MAX;
    *high = 0;
    for (int r = 0; r < c->size; r++) {
        const struct part *p = r == c->rank ? server_own_part(x, s) : &s->parts[r];
        if (!s->parts[r].active)
            continue;
        server_check_pieces(x, p);
        for (int64_t i = 0; i < p->head.pieces; i++) {
            *low = MIN(*low, p->pieces[i].at);
            *high = MAX(*high, p->pieces[i].at + p->pieces[i].len);
        }
    }
}

/* Copies a rank's pieces from the first `have` bytes of the window to `out`. Returns the number of bytes. */
static uint64_t server_collect_pieces(const struct exchange *x, const struct server *s, const struct part *p,
                                      uint32_t have, char *out)
{
    uint64_t done = 0;
    for (int64_t i = 0; i < p->head.pieces && p->pieces[i].at < have; i++) {
        const uint32_t len = MIN(p->pieces[i].len, have - p->pieces[i].at);
        memcpy(out + done, server_window(x, s) + p->pieces[i].at, len);
        done += len;
    }
    return done;
}

static void answer_rank(struct exchange *x, struct server *s, int r, struct answer answer, uint32_t have)
{
    struct part *p = &s->parts[r];
    const char *data = server_window(x, s) + p->head.first;
    uint64_t len = p->head.first < have ? MIN((uint64_t)p->head.bytes, have - (uint64_t)p->head.first) : 0;
    p->answer = answer;
    exchange_send(x, &s->bodies, r, MESSAGE_ANSWER, &p->answer, sizeof(p->answer));
    if (p->head.pieces > 1) {
        p->data = server_allocate((size_t)p->head.bytes);
        len = server_collect_pieces(x, s, p, have, p->data);
        data = p->data;
    }
    exchange_send(x, &s->bodies, r, MESSAGE_ANSWER_DATA, data, len);
}

static void answer_own_part(struct exchange *x, const struct server *s, struct answer answer, uint32_t have)
{
    struct part *p = server_own_part(x, s);
    p->answer = answer;
    server_collect_pieces(x, s, p, have, (char *)(uintptr_t)server_own_data(x, p));
}

static void read_window(struct exchange *x, struct server *s)
{
    const struct comm *c = x->file->comm;
    int64_t from, to;
    uint32_t low, high;
    size_t done = 0;
    struct answer answer = {.end = INT64_MAX};
    exchange_window(x, x->me, s->round, &from, &to);
    int rc = x->error;
    if (rc)
        low = high = 0; /* reads nothing; other ranks still wait for an answer */
    else
        server_wanted_range(x, s, &low, &high);
    if (high == 0 && !rc)
        return;
    if (!rc)
        rc = posix_transfer(x->file, false, server_window(x, s) + low, high - low, from + low, &done);
    if (rc || done < high - low)
        answer.end = from + low + (int64_t)done;
    answer.code = agree_encode(rc, c->rank);
    for (int r = 0; r < c->size; r++) {
        if (!s->parts[r].active)
            continue;
        if (r == c->rank && server_own_part(x, s)->head.pieces > 0)
            answer_own_part(x, s, answer, low + (uint32_t)done);
        else if (r != c->rank && s->parts[r].head.pieces > 0)
            answer_rank(x, s, r, answer, low + (uint32_t)done);
    }
}

void server_access_window(struct exchange *x, struct server *s)
{
    const int me = x->file->comm->rank;
    if (x->write)
        write_window(x, s);
    else
        read_window(x, s);
    if (s->parts[me].active)
        x->clients[s->round % SLOTS].flight.pending--;
    s->draining = true;
}

void server_finish(struct exchange *x, struct server *s)
{
    for (int r = 0; r < x->file->comm->size; r++)
        part_free(&s->parts[r]);
    s->busy = s->draining = false;
}
