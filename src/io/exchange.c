/* exchange.c: domains and rounds of two-phase access, and their order of steps. The steps of ranks are in
 * exchange_client.c, those of aggregators in exchange_server.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/exchange.h"

#include <stdlib.h>

/* Minimum size of a domain in bytes. */
#define DOMAIN_MIN (256 << 10)
/* Domains begin at multiples of a page; in a striped file, of a stripe. */
#define DOMAIN_ALIGN 4096
/* Longer stripes are not used as windows: these would need too much memory. */
#define STRIPE_MAX (64 << 20)

void exchange_window(const struct exchange *x, int aggregator, int round, int64_t *from, int64_t *to)
{
    if (x->domain == 0) {
        *from = x->low + ((int64_t)round * x->aggregators + aggregator) * x->window;
        *to = MIN(*from + x->window, x->high);
        return;
    }
    const int64_t begin = x->low + aggregator * x->domain;
    *from = begin + round * x->window;
    *to = MIN(MIN(*from + x->window, begin + x->domain), x->high);
}

bool exchange_needs_range(const struct exchange *x, int rank, int64_t from, int64_t to)
{
    const int64_t *record = x->op->all + (size_t)rank * RECORD_SIZE;
    return from < to && record[RECORD_LENGTH] > 0 && record[RECORD_FROM] < to && record[RECORD_TO] > from;
}

void exchange_record_error(struct exchange *x, int rc)
{
    if (rc && !x->error)
        x->error = rc;
}

static void message_done(struct request *m)
{
    struct flight *f = m->user;
    exchange_record_error(f->exchange, m->error);
    f->pending--;
    io_op_ready(f->exchange->op);
}

static void exchange_watch_request(struct exchange *x, struct flight *f, int rc, struct request *m)
{
    exchange_record_error(x, rc);
    if (rc)
        return;
    if (request_detach(m, message_done, f)) {
        f->pending++;
        return;
    }
    exchange_record_error(x, m->error);
    request_free(m);
}

void exchange_send(struct exchange *x, struct flight *f, int rank, enum exchange_message kind,
                   const void *data, uint64_t len)
{
    struct comm *c = x->file->comm;
    struct request *m = NULL;
    struct peer *peer;
    int rc = comm_get_peer(c, rank, &peer);
    if (!rc)
        rc = p2p_isend(c->proc->p2p, data, (MPI_Count)len, dtype_from_handle(MPI_BYTE), peer,
                       comm_envelope(c, c->rank, x->op->tag | (int)kind), SEND_STANDARD, &m);
    exchange_watch_request(x, f, rc, m);
}

void exchange_receive(struct exchange *x, struct flight *f, int rank, enum exchange_message kind, void *data,
                      uint64_t room)
{
    struct comm *c = x->file->comm;
    struct request *m = NULL;
    const int rc = p2p_irecv(c->proc->p2p, data, (MPI_Count)room, dtype_from_handle(MPI_BYTE),
                             comm_envelope(c, rank, x->op->tag | (int)kind), &m);
    exchange_watch_request(x, f, rc, m);
}

static void plan_domains(struct exchange *x, int64_t span, int64_t align)
{
    x->domain = ALIGN_UP((span + x->aggregators - 1) / x->aggregators, align);
    x->window = MIN(x->file->hints.cb_buffer_size, x->domain);
    x->rounds = (int)((x->domain + x->window - 1) / x->window);
}

/* A window is one stripe: with a longer window an aggregator would write to several servers. Stripes are
 * numbered from the start of the file, so that a stripe has the same aggregator in every operation. */
static void plan_stripes(struct exchange *x, int64_t stripe)
{
    const int64_t turn = x->aggregators * stripe;
    x->low -= x->low % turn;
    x->domain = 0;
    x->window = stripe;
    x->rounds = (int)((x->high - x->low + turn - 1) / turn);
}

/* Computes domains and rounds; the result is equal at all ranks. */
static void exchange_plan(struct exchange *x)
{
    const struct file *f = x->file;
    const int64_t align = f->hints.striping_unit ? f->hints.striping_unit : DOMAIN_ALIGN;
    x->low = INT64_MAX;
    x->high = 0;
    for (int r = 0; r < f->comm->size; r++) {
        const int64_t *record = x->op->all + (size_t)r * RECORD_SIZE;
        if (record[RECORD_LENGTH] == 0)
            continue;
        x->low = MIN(x->low, record[RECORD_FROM]);
        x->high = MAX(x->high, record[RECORD_TO]);
    }
    x->low -= x->low % align;
    const int64_t span = x->high - x->low;
    x->aggregators = (int)MIN((int64_t)f->naggregators, (span + DOMAIN_MIN - 1) / DOMAIN_MIN);
    if (f->hints.striping_factor > 1 && f->hints.striping_unit && f->hints.striping_unit <= STRIPE_MAX)
        plan_stripes(x, f->hints.striping_unit);
    else
        plan_domains(x, span, align);
    x->me = -1;
    for (int i = 0; i < x->aggregators; i++)
        if (f->aggregators[i] == f->comm->rank)
            x->me = i;
}

static void buffers_free(struct io_buffers *b)
{
    if (!b)
        return;
    for (int i = 0; i < SLOTS; i++)
        free(b->window[i]);
    free(b->filled);
    free(b);
}

void exchange_free_spare(struct file *f)
{
    buffers_free(f->spare);
    f->spare = NULL;
}

static struct io_buffers *buffers_get(struct file *f, size_t size)
{
    struct io_buffers *b = f->spare;
    f->spare = NULL;
    if (b && b->size >= size)
        return b;
    buffers_free(b);
    b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    b->size = size;
    b->filled = malloc(size / 8 + 16);
    for (int i = 0; i < SLOTS; i++)
        b->window[i] = malloc(size);
    if (b->filled && b->window[0] && b->window[SLOTS - 1])
        return b;
    buffers_free(b);
    return NULL;
}

static bool allocate_slots(struct exchange *x)
{
    const size_t ranks = (size_t)x->file->comm->size;
    for (int i = 0; i < SLOTS; i++) {
        x->clients[i].flight.exchange = x->servers[i].heads.exchange = x->servers[i].bodies.exchange = x;
        x->clients[i].parts = calloc((size_t)x->aggregators, sizeof(struct part));
        if (x->me >= 0)
            x->servers[i].parts = calloc(ranks, sizeof(struct part));
        if (!x->clients[i].parts || (x->me >= 0 && !x->servers[i].parts))
            return false;
    }
    x->position = malloc((size_t)x->aggregators * sizeof(*x->position));
    if (x->me >= 0)
        x->buffers = buffers_get(x->file, (size_t)x->window);
    return x->position && (x->me < 0 || x->buffers);
}

uint64_t exchange_position(const struct exchange *x, int64_t from)
{
    const struct access *a = &x->op->access;
    return a->length == 0 ? 0 : view_offset_to_position(&a->view, a->start, a->start + a->length, from);
}

int exchange_open(struct io_op *op, struct exchange **out)
{
    struct exchange *x = calloc(1, sizeof(*x));
    if (!x)
        return MPI_ERR_NO_MEM;
    x->op = op;
    x->file = op->file;
    x->write = op->access.write;
    x->end = INT64_MAX;
    exchange_plan(x);
    if (!allocate_slots(x))
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < x->aggregators; i++)
        x->position[i] = exchange_position(x, x->low + i * x->domain);
    *out = x;
    return 0;
}

/* The steps of an aggregator. Receives for the next window are posted before the current one is written,
 * so that its data is transferred in parallel. Returns true if a step was made. */
static bool exchange_advance_server(struct exchange *x)
{
    bool moved = false;
    struct server *requested = &x->servers[x->requested % SLOTS],
                  *answered = &x->servers[x->answered % SLOTS];
    struct server *done = &x->servers[x->done % SLOTS];
    if (x->requested < x->rounds && !requested->busy) {
        server_receive_heads(x, requested, x->requested++);
        moved = true;
    }
    /* `answered` < `sent`: this aggregator has listed its own pieces of the round. */
    if (x->answered < x->requested && x->answered < x->sent && answered->heads.pending == 0) {
        server_receive_bodies(x, answered);
        x->answered++;
        moved = true;
    }
    if (x->done < x->answered && done->bodies.pending == 0 && !done->draining && !moved) {
        server_access_window(x, done);
        x->done++;
        moved = true;
    }
    for (int i = 0; i < SLOTS; i++) {
        if (x->servers[i].busy && x->servers[i].draining && x->servers[i].bodies.pending == 0) {
            server_finish(x, &x->servers[i]);
            moved = true;
        }
    }
    return moved;
}

static bool exchange_is_over(const struct exchange *x)
{
    bool busy = x->sent < x->rounds || (x->me >= 0 && x->done < x->rounds);
    for (int i = 0; i < SLOTS; i++)
        busy = busy || x->clients[i].busy || x->servers[i].busy;
    return !busy;
}

bool exchange_advance(struct exchange *x)
{
    bool moved;
    do {
        moved = false;
        struct client *next = &x->clients[x->sent % SLOTS];
        if (x->sent < x->rounds && !next->busy) {
            client_begin(x, next, x->sent++);
            moved = true;
        }
        if (x->me >= 0)
            moved = exchange_advance_server(x) || moved;
        for (int i = 0; i < SLOTS; i++) {
            if (x->clients[i].busy && x->clients[i].flight.pending == 0) {
                client_finish(x, &x->clients[i]);
                moved = true;
            }
        }
    } while (moved);
    return exchange_is_over(x);
}

int exchange_close(struct exchange *x, int64_t *end)
{
    const int rc = x->error;
    *end = x->end;
    for (int i = 0; i < SLOTS; i++) {
        free(x->clients[i].parts);
        free(x->servers[i].parts);
    }
    if (x->buffers) {
        buffers_free(x->file->spare);
        x->file->spare = x->buffers;
    }
    free(x->position);
    free(x);
    return rc;
}
