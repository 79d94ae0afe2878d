/* shared_transfer.c: the general path of a shared-memory collective. A rank has one of three roles: a writer
 * contributes and continues while it has slots; a reader waits for each writer in turn; or every rank does
 * both, and all synchronise in each step. A writer whose memory is read directly posts one step, and waits
 * until the readers are done.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/shared_transfer.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"

static COUNTER(reads, "coll_reads", "Contributions to collectives read from the memory of another rank.");

#define CHUNK_MIN   1024 /* minimum bytes of a chunk; for shorter chunks a schedule is faster */
#define HANDSHAKE   400  /* estimated ns from the end of a direct read until the owner continues */
#define PERIOD      8
#define PERIOD_LONG 2
#define LONG_CALL   2097152 /* minimum bytes that all ranks of a long call move together */

static int count_blocks(const struct transfer *t)
{
    return t->each ? t->b->comm->size - 1 : 1;
}

/* Returns how many blocks move between ranks in a call. */
static int count_block_moves(const struct transfer *t)
{
    const int size = t->b->comm->size;
    return t->writer == SHARED_EVERYONE && t->reader == SHARED_EVERYONE ? size * (size - 1) : size - 1;
}

const char *transfer_slot(const struct transfer *t, int r, uint64_t step, size_t len)
{
    return shared_slot(t->b, r, step, len * (size_t)count_blocks(t)) +
           transfer_offset(t, r, t->b->comm->rank, len);
}

/* True if the methods of this call are measured; the same result at every rank. */
static bool is_tuned(const struct transfer *t)
{
    return t->bytes > SHARED_SHORT && t->b->reads && coll_copy_method() == COPY_MEASURED;
}

/* Returns the calls per sample if ranks share processors; fewer for long calls. */
static uint32_t calls_per_sample(const struct transfer *t)
{
    return !t->entered ? 1 : t->bytes * (size_t)count_block_moves(t) < LONG_CALL ? PERIOD : PERIOD_LONG;
}

static enum shared_method choose_own_method(const struct transfer *t)
{
    if (t->bytes <= SHARED_SHORT || !t->offer || !t->b->reads || coll_copy_method() == COPY_SLOTS)
        return METHOD_SLOTS;
    if (coll_copy_method() == COPY_MEASURED)
        return t->decision.method;
    return coll_copy_method() == COPY_SPLIT && t->helps ? METHOD_SPLIT : METHOD_READ;
}

/* Writes the first data word of a flag: the address of data to be read directly, or the time (ns) in which
 * the owner filled the first slot. */
static void write_flag_word(const struct transfer *t, uint64_t step, uint64_t word)
{
    memcpy(t->b->head->rank[t->b->comm->rank].flag[step % SHARED_DEPTH].data, &word, sizeof(word));
}

static uint64_t read_flag_word(const struct transfer *t, int r, uint64_t step)
{
    uint64_t word;
    memcpy(&word, t->b->head->rank[r].flag[step % SHARED_DEPTH].data, sizeof(word));
    return word;
}

/* Fills a slot of this step. The first slot of a long message includes the time of filling it. */
static void transfer_fill_slot(struct transfer *t, uint64_t step, size_t at, size_t len)
{
    struct shared *b = t->b;
    const size_t all = len * (size_t)count_blocks(t);
    char *slot = shared_slot(b, b->comm->rank, step, all);
    const bool announces = at == 0 && t->bytes > SHARED_SHORT && all > SHARED_INLINE;
    const bool measured = announces && t->decision.measured;
    const uint64_t since = measured ? clock_ns() : 0;
    t->ops->put(t, slot, at, len);
    if (announces)
        write_flag_word(t, step, measured ? clock_ns() - since + 1 : 0);
}

/* Called when rank r has posted the first step. Returns the current time (ns) if this call is measured,
 * else 0. With slots, the owner of the data decides whether it is measured. */
static uint64_t begin_measuring(struct transfer *t, int r, uint64_t step)
{
    if (!is_tuned(t) || t->entered)
        return 0;
    const bool slots = shared_get_posted_method(t->b, r, step) == METHOD_SLOTS;
    t->filled_ns = slots ? read_flag_word(t, r, step) : 0;
    return (slots ? t->filled_ns != 0 : t->decision.measured) ? clock_ns() : 0;
}

/* Returns the cost of the call in ns. With slots: if this rank waited for the first slot, the time of
 * filling it is added; otherwise filling and reading overlap and the slower one counts. With direct reads,
 * HANDSHAKE is added for the owner's wait. */
static uint64_t compute_call_cost(const struct transfer *t, uint64_t ns, size_t steps, bool waited)
{
    if (t->reading)
        return ns + HANDSHAKE;
    return waited ? ns + t->filled_ns : MAX(ns, t->filled_ns * steps);
}

/* True if the data of all sources is read directly; the call then has only one step. */
static bool is_all_read_directly(const struct transfer *t)
{
    const int sources = t->writer == SHARED_EVERYONE ? t->b->comm->size - 1 : 1;
    return t->reading && __builtin_popcountll(t->reading) == sources;
}

/* True if the data of all sources moved by the same method. */
static bool is_single_method(const struct transfer *t)
{
    return !t->reading || is_all_read_directly(t);
}

/* True if the data of this call moved by the method of t->decision. */
static bool used_decided_method(const struct transfer *t)
{
    return is_single_method(t) && (t->reading ? t->method : METHOD_SLOTS) == t->decision.method;
}

static void report_read(struct transfer *t, uint64_t since, size_t steps, bool waited)
{
    if (since && used_decided_method(t))
        shared_method_report(t->b, t->args->kind, t->bytes, &t->decision,
                             compute_call_cost(t, clock_ns() - since, steps, waited), 1);
}

/* If ranks share processors, reports the time of the whole call, at readers and writers. */
static void report_call(struct transfer *t, enum shared_method method)
{
    if (t->entered && is_tuned(t) && is_single_method(t) && method == t->decision.method)
        shared_method_report(t->b, t->args->kind, t->bytes, &t->decision, clock_ns() - t->entered,
                             calls_per_sample(t));
}

/* True if rank r, which has posted the first step, offers its data for direct reads; records its address. */
static bool should_read_directly(struct transfer *t, int r, uint64_t step)
{
    t->method = shared_get_posted_method(t->b, r, step);
    if (likely(t->method == METHOD_SLOTS))
        return false;
    t->remote[r] = read_flag_word(t, r, step);
    t->reading |= (uint64_t)1 << r;
    counter_add(&reads, 1);
    return true;
}

static bool is_short(const struct transfer *t)
{
    return t->bytes * (size_t)count_blocks(t) <= SHARED_SMALL;
}

/* Reports that this rank is done with a step. The report may be delayed if no rank can be waiting: after a
 * short step, or with many slots. A rank whose memory is read directly does wait. */
static void transfer_step_done(struct transfer *t, uint64_t step)
{
    if (is_short(t) || (!t->reading && shared_slot_count(t->b) > SHARED_DEPTH_FEW))
        shared_report_short_step(t->b, step);
    else
        shared_report_step(t->b, step);
}

static void transfer_copy_own(struct transfer *t)
{
    if (t->ops->own)
        t->ops->own(t);
}

/* Owner's side of a split copy: writes a part of this rank's data into the memory of its only reader. */
static void transfer_write_part(struct transfer *t, uint64_t step)
{
    const struct shared *b = t->b;
    const int reader = t->reader == SHARED_EVERYONE ? 1 - b->comm->rank : t->reader;
    const size_t mine = t->each ? (size_t)reader * t->bytes : 0; /* offset in this rank's contribution */
    const size_t there = t->args->kind == COLL_GATHER ? (size_t)b->comm->rank * t->bytes : 0;
    const struct split_copy h = {.reader = reader,
                                 .step = step,
                                 .from = (const char *)t->offer + mine,
                                 .skip = there,
                                 .bytes = t->bytes,
                                 .scratch = t->ops->combine ? shared_scratch(t->b) : NULL,
                                 .combine = t->ops->combine,
                                 .arg = t};
    split_copy_write(t->b, &h);
}

static void write_side(struct transfer *t, uint64_t last)
{
    struct shared *b = t->b;
    const enum shared_method method = choose_own_method(t);
    if (method != METHOD_SLOTS) {
        uint64_t step = shared_begin_step(b, sizeof(uint64_t), t->reader);
        write_flag_word(t, step, (uintptr_t)t->offer);
        if (method == METHOD_SPLIT)
            split_copy_begin(b, t->bytes);
        shared_post_step(b, step, method);
        shared_wake(b, t->reader);
        b->step = last;
        transfer_copy_own(t);
        if (method == METHOD_SPLIT)
            transfer_write_part(t, step);
        shared_wait_readers_done(b, last, t->reader);
        shared_report_short_step(b, last); /* the steps of a writer count for SHARED_LAG too */
        report_call(t, method);
        return;
    }
    for (size_t at = 0; at < t->bytes; at += t->chunk) {
        const size_t len = MIN(t->chunk, t->bytes - at), all = len * (size_t)count_blocks(t);
        const uint64_t step = shared_begin_step(b, all, t->reader);
        transfer_fill_slot(t, step, at, len);
        shared_post_step(b, step, METHOD_SLOTS);
        shared_wake(b, t->reader);
    }
    transfer_copy_own(t);
    shared_report_short_step(b, last);
    report_call(t, METHOD_SLOTS);
}

static void transfer_fetch_block(struct transfer *t, int r)
{
    if (t->method == METHOD_SPLIT && t->target)
        t->ops->fetch_helped(t, r);
    else if (t->ops->fetch)
        t->ops->fetch(t, r);
}

/* Receives one step from one rank; false if that rank is in a different call. */
static bool receive_step(struct transfer *t, int r, uint64_t step, size_t at, size_t len)
{
    if (t->reading >> r & 1)
        return true;
    if (unlikely(!shared_wait(t->b, r, step)))
        return false;
    if (at == 0 && should_read_directly(t, r, step)) {
        transfer_fetch_block(t, r);
    } else if (t->ops->take) {
        t->ops->take(t, r, transfer_slot(t, r, step, len), at, len);
    }
    return true;
}

static bool receive_step_from_all(struct transfer *t, uint64_t step, size_t at, size_t len)
{
    const int me = t->b->comm->rank, size = t->b->comm->size;
    if (t->writer != SHARED_EVERYONE)
        return receive_step(t, t->writer, step, at, len);
    for (int k = 1; k < size; k++)
        if (!receive_step(t, (me + k) % size, step, at, len))
            return false;
    return true;
}

static void read_side(struct transfer *t, uint64_t last)
{
    struct shared *b = t->b;
    const int first_source = t->writer == SHARED_EVERYONE ? (b->comm->rank + 1) % b->comm->size : t->writer;
    const uint64_t first = b->step + 1;
    if (t->target)
        split_copy_accept(b, first, t->target, t->mine);
    transfer_copy_own(t);
    const bool waited = !shared_has_posted(b, first_source, first);
    if (waited && !shared_wait(b, first_source, first)) {
        b->step = last;
        if (t->target)
            split_copy_cancel(b, first);
        shared_report_step(b, last);
        return;
    } else if (!waited) /* the writer is ahead: prefetch its next flag */
        __builtin_prefetch(&b->head->rank[first_source].flag[(first + 1) % SHARED_DEPTH]);
    const uint64_t since = begin_measuring(t, first_source, first);
    uint64_t step = first;
    for (size_t at = 0; at < t->bytes; at += t->chunk, step++) {
        const size_t len = MIN(t->chunk, t->bytes - at);
        if (unlikely(!receive_step_from_all(t, step, at, len)))
            break;
        const bool at_once = at == 0 && is_all_read_directly(t);
        if (t->ops->finish)
            t->ops->finish(t, step, at, at_once ? t->bytes : len);
        if (at_once)
            break;
        if (step < last)
            transfer_step_done(t, step);
    }
    b->step = last;
    if (unlikely(b->mismatched_rank) && t->target)
        split_copy_cancel(b, first);
    transfer_step_done(t, last);
    if (b->mismatched_rank)
        return;
    report_read(t, since, (size_t)(last - first + 1), waited);
    report_call(t, t->reading ? t->method : METHOD_SLOTS);
}

/* Receives the data of all ranks after all have posted this step. */
static void receive_synchronized_step(struct transfer *t, uint64_t step, size_t at, size_t len)
{
    const int me = t->b->comm->rank, size = t->b->comm->size;
    for (int k = 1; k < size; k++) {
        const int r = (me + k) % size;
        if (t->reading >> r & 1)
            continue;
        if (at == 0 && should_read_directly(t, r, step)) {
            transfer_fetch_block(t, r);
        } else if (t->ops->take) {
            t->ops->take(t, r, transfer_slot(t, r, step, len), at, len);
        }
    }
}

/* Runs a call in which every rank reads and writes. A rank whose memory is read posts all steps like the
 * others, or one step if the data of all ranks is read directly. A final synchronisation ensures that no
 * rank still reads when the call returns. */
static void run_both_sides(struct transfer *t, uint64_t last)
{
    struct shared *b = t->b;
    const enum shared_method method = choose_own_method(t);
    const uint64_t first = b->step + 1;
    uint64_t since = 0;
    for (size_t at = 0; at < t->bytes; at += t->chunk) {
        const size_t len = MIN(t->chunk, t->bytes - at);
        const size_t all = method == METHOD_READ ? sizeof(uint64_t) : len * (size_t)count_blocks(t);
        const uint64_t step = shared_begin_step(b, all, SHARED_EVERYONE);
        if (at == 0 && method == METHOD_READ)
            write_flag_word(t, step, (uintptr_t)t->offer);
        else if (method == METHOD_SLOTS)
            transfer_fill_slot(t, step, at, len);
        if (!shared_synchronize(b, step, method)) {
            b->step = last;
            shared_report_step(b, last);
            return;
        }
        if (at == 0)
            since = begin_measuring(t, (b->comm->rank + 1) % b->comm->size, step);
        receive_synchronized_step(t, step, at, len);
        const bool at_once = at == 0 && method == METHOD_READ && is_all_read_directly(t);
        if (t->ops->finish)
            t->ops->finish(t, step, at, at_once ? t->bytes : len);
        if (at_once)
            break;
        transfer_step_done(t, step);
    }
    transfer_copy_own(
        t); /* measured too, although an allgather that is read directly has its own block in place */
    report_read(t, since, (size_t)(last - first + 1), true);
    b->step = last;
    if (last > b->reported && !is_short(t))
        /* before the synchronisation, which may need the flag of the first step */
        shared_report_step(b, last);
    if (t->reading || method == METHOD_READ) {
        shared_synchronize(b, shared_begin_step(b, 0, SHARED_EVERYONE), METHOD_SLOTS);
        shared_report_step(b, b->step);
    }
    report_call(t, t->reading ? t->method : METHOD_SLOTS);
}

/* Returns the bytes of each block that one step moves; 0 if the call does not fit in slots. */
static size_t step_block_bytes(const struct transfer *t, size_t unit)
{
    const size_t blocks = (size_t)count_blocks(t);
    if (t->bytes * blocks <= SHARED_SMALL)
        return t->bytes;
    if (!shared_open_big(t->b))
        return 0;
    const size_t most = t->b->head->big_size / blocks;
    if (t->bytes <= most)
        return t->bytes;
    const size_t chunk = most / unit * unit;
    return chunk >= CHUNK_MIN ? chunk : 0;
}

bool transfer_run(struct transfer *t, size_t unit)
{
    struct shared *b = t->b;
    t->chunk = step_block_bytes(t, unit);
    if (t->chunk == 0)
        return false;
    const uint64_t last = b->step + (t->bytes + t->chunk - 1) / t->chunk;
    const bool writes = t->writer == SHARED_EVERYONE || t->writer == b->comm->rank;
    const bool takes = t->reader == SHARED_EVERYONE || t->reader == b->comm->rank;
    const bool crowded = b->comm->proc->net->oversubscribed;
    t->entered = crowded && t->bytes > SHARED_SHORT ? clock_ns() : 0;
    t->helps &= b->reads && coll_copy_method() != COPY_SLOTS;
    if (crowded && coll_copy_method() != COPY_SPLIT)
        t->helps = false; /* a helping owner would occupy the processor that its reader needs */
    if (!t->helps)
        t->target = NULL;
    t->decision = is_tuned(t) ? shared_method_begin(b, t->args->kind, t->bytes, t->helps, calls_per_sample(t))
                              : (struct shared_decision){.method = METHOD_SLOTS};
    if (t->writer == SHARED_EVERYONE && t->reader == SHARED_EVERYONE)
        run_both_sides(t, last);
    else if (t->writer == SHARED_EVERYONE ? !takes : writes)
        write_side(t, last);
    else
        read_side(t, last);
    return true;
}
