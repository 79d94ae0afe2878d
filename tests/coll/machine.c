/* machine.c: executes the steps of all ranks in turns. A send completes only after its receive was started
 * (the strictest form of rendezvous), so a schedule that does not deadlock here never deadlocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const buf_names[] = {"none", "send", "recv", "temp"};
static const char *const step_names[] = {"send", "recv", "copy", "reduce", "fence"};

static void *grow_array(void *p, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return p;
    *capacity = *capacity ? 2 * *capacity : 8;
    p = realloc(p, (size_t)*capacity * size);
    if (!p)
        abort();
    return p;
}

void machine_open(struct machine *m, int size, int remote_size)
{
    memset(m, 0, sizeof(*m));
    m->size = size;
    m->nprocs = size + remote_size;
    m->procs = calloc((size_t)m->nprocs, sizeof(*m->procs));
    m->channels = calloc((size_t)m->nprocs * (size_t)m->nprocs, sizeof(*m->channels));
    if (!m->procs || !m->channels)
        abort();
    for (int p = 0; p < m->nprocs; p++)
        sched_init(&m->procs[p].sched);
}

void machine_close(struct machine *m)
{
    for (int p = 0; p < m->nprocs; p++) {
        sched_free(&m->procs[p].sched);
        free(m->procs[p].flights);
        for (int b = 0; b < SCHED_BUFS; b++)
            free(m->procs[p].mem[b].v);
    }
    for (int c = 0; c < m->nprocs * m->nprocs; c++) {
        free(m->channels[c].sends);
        free(m->channels[c].receives);
    }
    free(m->procs);
    free(m->channels);
    free(m->dirty);
}

void machine_fail(struct machine *m, const char *fmt, ...)
{
    if (m->error[0])
        return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(m->error, sizeof(m->error), fmt, args);
    va_end(args);
}

void machine_buffer(struct machine *m, int proc, enum sched_buf buf, int64_t items, bool constant)
{
    struct memory *mem = &m->procs[proc].mem[buf];
    free(mem->v);
    mem->v = calloc((size_t)items + 1, sizeof(*mem->v));
    mem->items = items;
    mem->constant = constant;
    if (!mem->v)
        abort();
}

void machine_set(struct machine *m, int proc, enum sched_buf buf, int64_t at, int rank, int64_t item)
{
    struct value *v = &m->procs[proc].mem[buf].v[at];
    v->item = (int32_t)item;
    v->n = 1;
    v->rank[0] = (uint8_t)rank;
}

static int process_of_peer(const struct machine *m, int proc, int peer)
{
    bool second = proc >= m->size;
    if (PEER_IS_REMOTE(peer))
        return (second ? 0 : m->size) + PEER_REMOTE(peer);
    return (second ? m->size : 0) + peer;
}

static int group_size(const struct machine *m, int proc, int peer)
{
    bool second = (proc >= m->size) != PEER_IS_REMOTE(peer);
    return second ? m->nprocs - m->size : m->size;
}

/* Checks that the range exists, may be accessed now, and was written before it is read. */
static bool check_range(struct machine *m, int proc, int buf, int64_t at, int64_t count, bool write)
{
    struct process *p = &m->procs[proc];
    const struct memory *mem = &p->mem[buf];
    if (buf == BUF_NONE || at < 0 || count < 0 || at + count > mem->items) {
        machine_fail(m, "rank %d: %s[%lld..%lld) is outside its %lld items", proc, buf_names[buf],
                     (long long)at, (long long)(at + count), (long long)mem->items);
        return false;
    }
    if (write && mem->constant)
        machine_fail(m, "rank %d writes %s, which is only to be read", proc, buf_names[buf]);
    if (!p->shape.adjacent && p->shape.kind != COLL_REDUCE_SCATTER && buf != BUF_TEMP && count > 1)
        machine_fail(m, "rank %d names %lld blocks of %s at once, which do not lie together", proc,
                     (long long)count, buf_names[buf]);
    for (int i = 0; i < p->nflights; i++) {
        const struct flight *f = &p->flights[i];
        if (f->buf == buf && at < f->at + f->count && f->at < at + count && (write || f->incoming))
            machine_fail(m, "rank %d touches %s[%lld..%lld) while a message moves part of it", proc,
                         buf_names[buf], (long long)at, (long long)(at + count));
    }
    for (int64_t i = at; !write && i < at + count; i++)
        if (mem->v[i].n == 0)
            machine_fail(m, "rank %d reads %s[%lld], which was never written", proc, buf_names[buf],
                         (long long)i);
    return !m->error[0];
}

static bool operands_overlap(const struct step *s, int a, int b)
{
    return s->buf[a] == s->buf[b] && s->at[a] < s->at[b] + s->count && s->at[b] < s->at[a] + s->count;
}

static bool operands_are_equal(const struct step *s, int a, int b)
{
    return s->buf[a] == s->buf[b] && s->at[a] == s->at[b];
}

static void execute_copy(struct machine *m, int proc, const struct step *s)
{
    struct process *p = &m->procs[proc];
    if (operands_overlap(s, 0, 1))
        machine_fail(m, "rank %d copies onto itself", proc);
    if (check_range(m, proc, s->buf[0], s->at[0], s->count, false) &&
        check_range(m, proc, s->buf[1], s->at[1], s->count, true))
        memcpy(&p->mem[s->buf[1]].v[s->at[1]], &p->mem[s->buf[0]].v[s->at[0]],
               (size_t)s->count * sizeof(struct value));
}

static struct value combine_values(struct machine *m, int proc, const struct value *left,
                                   const struct value *right)
{
    struct value v = *left;
    if (left->item != right->item)
        machine_fail(m, "rank %d combines element %d with element %d", proc, left->item, right->item);
    if (left->n + right->n > RANKS_MAX)
        machine_fail(m, "rank %d combines more contributions than there are", proc);
    if (m->error[0])
        return v;
    memcpy(v.rank + left->n, right->rank, right->n);
    v.n = (uint8_t)(left->n + right->n);
    return v;
}

static void execute_reduce(struct machine *m, int proc, const struct step *s)
{
    struct process *p = &m->procs[proc];
    bool over_left = operands_are_equal(s, 2, 0), over_right = operands_are_equal(s, 2, 1);
    if (operands_overlap(s, 0, 1) || (operands_overlap(s, 2, 0) && !over_left) ||
        (operands_overlap(s, 2, 1) && !over_right))
        machine_fail(m, "rank %d reduces with operands that overlap", proc);
    if (over_left && !p->shape.commutative)
        machine_fail(m, "rank %d writes the left operand of an operator that does not commute", proc);
    if (!check_range(m, proc, s->buf[0], s->at[0], s->count, false) ||
        !check_range(m, proc, s->buf[1], s->at[1], s->count, false) ||
        !check_range(m, proc, s->buf[2], s->at[2], s->count, true))
        return;
    for (int64_t i = 0; i < s->count; i++)
        p->mem[s->buf[2]].v[s->at[2] + i] =
            combine_values(m, proc, &p->mem[s->buf[0]].v[s->at[0] + i], &p->mem[s->buf[1]].v[s->at[1] + i]);
}

static void start_message(struct machine *m, int proc, const struct step *s)
{
    struct process *p = &m->procs[proc];
    const bool send = s->kind == STEP_SEND;
    if ((PEER_IS_REMOTE(s->peer) ? PEER_REMOTE(s->peer) : s->peer) >= group_size(m, proc, s->peer)) {
        machine_fail(m, "rank %d talks to peer %d, who does not exist", proc, s->peer);
        return;
    }
    if (s->count > 0 && !check_range(m, proc, s->buf[0], s->at[0], s->count, !send))
        return;
    int other = process_of_peer(m, proc, s->peer),
        index = send ? proc * m->nprocs + other : other * m->nprocs + proc;
    struct channel *c = &m->channels[index];
    struct message message = {.buf = s->buf[0], .at = s->at[0], .count = s->count};
    if (send) {
        c->sends = grow_array(c->sends, c->nsends, &c->csends, sizeof(*c->sends));
        c->sends[c->nsends++] = message;
    } else {
        c->receives = grow_array(c->receives, c->nreceives, &c->creceives, sizeof(*c->receives));
        c->receives[c->nreceives++] = message;
    }
    m->dirty = grow_array(m->dirty, m->ndirty, &m->cdirty, sizeof(*m->dirty));
    m->dirty[m->ndirty++] = index;
    p->pending++;
    if (s->count > 0) {
        p->flights = grow_array(p->flights, p->nflights, &p->cflights, sizeof(*p->flights));
        p->flights[p->nflights++] =
            (struct flight){.buf = s->buf[0], .incoming = !send, .at = s->at[0], .count = s->count};
    }
}

static void match_messages(struct machine *m, int index)
{
    struct channel *c = &m->channels[index];
    int from = index / m->nprocs, to = index % m->nprocs;
    while (c->matched < c->nsends && c->matched < c->nreceives) {
        struct process *a = &m->procs[from], *b = &m->procs[to];
        struct message *s = &c->sends[c->matched], *r = &c->receives[c->matched];
        c->matched++;
        if (s->count != r->count) {
            machine_fail(m, "rank %d sends %lld items to rank %d, who expects %lld", from,
                         (long long)s->count, to, (long long)r->count);
            return;
        }
        if (s->count > 0)
            memcpy(&b->mem[r->buf].v[r->at], &a->mem[s->buf].v[s->at],
                   (size_t)s->count * sizeof(struct value));
        b->arrived[0] |= a->arrived[0];
        b->arrived[1] |= a->arrived[1];
        a->pending--;
        b->pending--;
    }
}

/* Runs this rank as far as possible; returns true if it made progress. */
static bool advance_process(struct machine *m, int proc)
{
    struct process *p = &m->procs[proc];
    uint32_t before = p->next;
    while (p->next < p->sched.count && !m->error[0]) {
        const struct step *s = &p->sched.steps[p->next];
        if (s->kind == STEP_FENCE) {
            if (p->pending > 0)
                break;
            p->nflights = 0;
        } else if (s->kind == STEP_COPY) {
            execute_copy(m, proc, s);
        } else if (s->kind == STEP_REDUCE) {
            execute_reduce(m, proc, s);
        } else {
            start_message(m, proc, s);
        }
        p->next++;
    }
    if (p->next == p->sched.count && p->pending == 0)
        p->done = true;
    return p->next != before || p->done;
}

static void report_deadlock(struct machine *m)
{
    for (int p = 0; p < m->nprocs; p++)
        if (!m->procs[p].done)
            machine_fail(m, "deadlock: rank %d waits at step %u of %u with %d messages under way", p,
                         m->procs[p].next, m->procs[p].sched.count, m->procs[p].pending);
    for (int c = 0; c < m->nprocs * m->nprocs; c++)
        if (m->channels[c].nsends != m->channels[c].nreceives)
            machine_fail(m, "rank %d sends %d messages to rank %d, who receives %d", c / m->nprocs,
                         m->channels[c].nsends, c % m->nprocs, m->channels[c].nreceives);
}

bool machine_run(struct machine *m)
{
    for (int p = 0; p < m->nprocs; p++) {
        machine_buffer(m, p, BUF_TEMP, m->procs[p].sched.temp, false);
        m->procs[p].arrived[p >= m->size] |= 1ull << (p >= m->size ? p - m->size : p);
        if (m->procs[p].sched.failed)
            machine_fail(m, "out of memory");
    }
    bool moved = true;
    while (moved && !m->error[0]) {
        moved = false;
        for (int p = 0; p < m->nprocs && !m->error[0]; p++)
            if (!m->procs[p].done)
                moved |= advance_process(m, p);
        for (int i = 0; i < m->ndirty && !m->error[0]; i++)
            match_messages(m, m->dirty[i]);
        m->ndirty = 0;
    }
    report_deadlock(m);
    return !m->error[0];
}

void sched_print(const struct sched *s, int rank)
{
    printf("rank %d: %u steps, %lld temporary items\n", rank, s->count, (long long)s->temp);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct step *t = &s->steps[i];
        printf("  %-6s", step_names[t->kind]);
        if (t->kind == STEP_SEND || t->kind == STEP_RECV)
            printf(" %s %d", t->kind == STEP_SEND ? "to" : "from", t->peer);
        for (int b = 0; b < 3; b++)
            if (t->buf[b])
                printf(" %s[%lld+%lld)", buf_names[t->buf[b]], (long long)t->at[b], (long long)t->count);
        printf("\n");
    }
}
