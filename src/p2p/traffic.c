/* traffic.c: measures the cost of paths, and selects the path of the next large message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/traffic.h"

#include <stdio.h>

#include "base/util.h"

#define SMALLEST   4096u
#define UNIT       65536u /* costs are ns for this many bytes */
#define PAUSE_PART 8      /* a pause is longer than the last message's cost / PAUSE_PART ... */
#define PAUSE_NS   500    /* ... and longer than this many ns */
/* bytes: for shorter messages a second control message costs more than the split saves */
#define SPLIT_MIN 16384u
#define PAGE      4096u
/* 64ths of a split message that the receiver reads: more than half, since it begins first */
#define SHARE_READ 36

/* Classes have their middle at a power of two, so that sizes near one, which are common, share a class. */
static uint8_t size_class(uint64_t bytes)
{
    uint8_t i = 0;
    for (uint64_t limit = SMALLEST / 2 * 3; i < TRAFFIC_SIZES - 1 && bytes >= limit; limit *= 2)
        i++;
    return i;
}

/* Candidate 0 is the rule's path; path 0 takes the number of the rule's path. */
static enum path candidate_path(const struct traffic *t, unsigned candidate)
{
    return (enum path)(candidate == 0 ? t->rule : candidate == t->rule ? 0 : candidate);
}

static uint32_t paths_to_candidates(const struct traffic *t, uint32_t paths)
{
    uint32_t set = 0;
    for (unsigned c = 0; c < PATHS; c++)
        if (paths & PATH_BIT(candidate_path(t, c)))
            set |= 1u << c;
    return set;
}

void traffic_open(struct traffic *t, enum path rule)
{
    *t = (struct traffic){.rule = (uint8_t)rule};
}

/* Lists the paths that are worth trying. An adapter writes as fast as it reads. If processors move the bytes,
 * two of them (SPLIT) are faster than one. In an exchange each processor has its own bytes to move; the
 * sender's may then write the whole message. If ranks share cores, the receiver's processor moves the bytes,
 * since only its work can be measured. */
uint32_t traffic_list_paths(const struct traffic_options *o, uint64_t bytes)
{
    const bool helps = o->write && !o->shared_cores && (o->cpu_moves || o->software);
    const bool split = helps && !o->exchange && bytes >= SPLIT_MIN;
    const bool write = (o->write && !o->cpu_moves) || (helps && o->exchange);
    return PATH_BIT(PATH_READ) | (o->cpu_moves ? PATH_BIT(PATH_PIECES) : 0) |
           (write ? PATH_BIT(PATH_WRITE) : 0) | (split ? PATH_BIT(PATH_SPLIT) : 0);
}

/* ---- kinds ---- */

static bool follows_pause(const struct traffic *t, uint64_t now)
{
    return t->ended == 0 || now - t->ended > MAX((uint64_t)PAUSE_NS, t->last_cost / PAUSE_PART);
}

static enum traffic_kind classify_message(struct traffic *t, uint8_t size, bool exchange, uint64_t now)
{
    struct traffic_class *c = &t->classes[size];
    if (exchange)
        return TRAFFIC_EXCHANGE;
    if (t->under_way > 0 || !follows_pause(t, now)) {
        c->bursty = true;
        c->isolated = false;
    } else {
        c->bursty = c->bursty && !c->isolated;
        c->isolated = true;
    }
    return c->bursty ? TRAFFIC_BURST : TRAFFIC_ISOLATED;
}

/* ---- a message begins ---- */

/* Opens a class with the costs of the nearest measured class (the smaller of two), so that paths that are
 * much slower there are examined later. */
static void traffic_key_open(struct traffic *t, uint8_t kind, uint8_t size)
{
    uint32_t prior[PATHS] = {0};
    for (unsigned c = 0; c < PATHS; c++)
        for (int d = 1; d < TRAFFIC_SIZES && prior[c] == 0; d++)
            for (int i = size - d; i <= size + d && prior[c] == 0; i += 2 * d)
                if (i >= 0 && i < TRAFFIC_SIZES && t->keys[kind][i].tune.candidate[c].measured)
                    prior[c] = t->keys[kind][i].tune.candidate[c].cost;
    tune_open(&t->keys[kind][size].tune, PATHS, prior);
}

/* True if the messages of a burst make a sample: the whole burst, or TRAFFIC_BATCH_MOST messages of it.
 * Messages of a burst overlap, so that only the time of the batch can be measured. */
static bool is_whole_batch(const struct traffic *t, unsigned messages)
{
    return messages >= TRAFFIC_BATCH_MOST || (messages >= TRAFFIC_BATCH && t->under_way == 0);
}

enum path traffic_begin(struct traffic *t, uint64_t bytes, uint32_t open, bool exchange, uint64_t now,
                        struct traffic_ticket *ticket)
{
    const uint8_t size = size_class(bytes);
    const enum traffic_kind kind = classify_message(t, size, exchange, now);
    struct traffic_key *k = &t->keys[kind][size];
    const uint32_t allowed = paths_to_candidates(t, open);
    if (!tune_is_open(&k->tune))
        traffic_key_open(t, (uint8_t)kind, size);
    if (kind == TRAFFIC_ISOLATED || k->started == 0 || is_whole_batch(t, k->started) ||
        !(allowed >> k->batch.candidate & 1)) {
        k->batch = tune_pick_candidate(&k->tune, allowed);
        k->started = 0;
    }
    k->started++;
    t->under_way++;
    *ticket = (struct traffic_ticket){.began = now,
                                      .bytes = bytes,
                                      .number = ++t->messages,
                                      .tune = k->batch,
                                      .size = size,
                                      .kind = (uint8_t)kind,
                                      .open = true};
    return candidate_path(t, k->batch.candidate);
}

/* ---- a message ends ---- */

static uint64_t cost_per_unit(uint64_t ns, uint64_t bytes)
{
    return ns * UNIT / MAX(bytes, 1u);
}

/* The cost is valid only if no later message has begun, with which the message would have shared its time. */
static void finish_isolated_message(struct traffic *t, struct traffic_key *k, struct traffic_ticket *ticket,
                                    uint64_t ns)
{
    tune_report(&k->tune, &ticket->tune, cost_per_unit(ns, ticket->bytes), ticket->number == t->messages);
}

static void finish_burst_message(const struct traffic *t, struct traffic_key *k,
                                 struct traffic_ticket *ticket, uint64_t ns)
{
    if (k->turn != ticket->tune.turn) {
        k->turn = ticket->tune.turn;
        k->ns = k->bytes = k->done = 0;
    }
    k->ns += ns;
    k->bytes += ticket->bytes;
    if (!is_whole_batch(t, ++k->done))
        return;
    tune_report(&k->tune, &ticket->tune, cost_per_unit(k->ns, k->bytes), true);
    k->ns = k->bytes = k->done = 0;
}

void traffic_end(struct traffic *t, struct traffic_ticket *ticket, uint64_t now, uint64_t work)
{
    if (!ticket->open)
        return;
    struct traffic_key *k = &t->keys[ticket->kind][ticket->size];
    const bool follows = ticket->began < t->ended || !follows_pause(t, ticket->began);
    const uint64_t since = ticket->kind != TRAFFIC_ISOLATED && follows ? t->ended : ticket->began;
    const uint64_t ns = work ? work : now - since;
    traffic_cancel(t, ticket);
    if (ticket->kind == TRAFFIC_ISOLATED)
        finish_isolated_message(t, k, ticket, ns);
    else
        finish_burst_message(t, k, ticket, ns);
    t->last_cost = now - MAX(ticket->began, t->ended);
    t->ended = now;
}

void traffic_cancel(struct traffic *t, struct traffic_ticket *ticket)
{
    t->under_way -= ticket->open;
    ticket->open = false;
}

/* The receiver reads half of a message in a burst, in which neither processor is idle, and more of an
 * isolated message. */
uint64_t traffic_read_share(const struct traffic_ticket *ticket)
{
    const uint64_t share = ticket->kind == TRAFFIC_ISOLATED ? SHARE_READ : 32;
    const uint64_t mine = ticket->bytes / 64 * share;
    return ticket->bytes >= 4 * PAGE ? mine / PAGE * PAGE : MAX(mine, 1u);
}

/* ---- for people ---- */

size_t traffic_describe(const struct traffic *t, const char *place, char *out, size_t size)
{
    static const char *const kinds[] = {"isolated", "bursts", "exchanges"};
    static const char *const paths[] = {"pieces", "read", "written", "split"};
    const char *names[PATHS];
    size_t at = 0;
    for (unsigned c = 0; c < PATHS; c++)
        names[c] = paths[candidate_path(t, c)];
    if (size > 0)
        out[0] = '\0';
    for (unsigned i = 0; i < TRAFFIC_KINDS * TRAFFIC_SIZES && at + 1 < size; i++) {
        const unsigned class = i / TRAFFIC_KINDS, kind = i % TRAFFIC_KINDS;
        const struct tune *tune = &t->keys[kind][class].tune;
        if (!tune_is_open(tune))
            continue;
        const int head = snprintf(out + at, size - at, "%s, %u KiB, %s: ", place, 4u << class, kinds[kind]);
        at = MIN(at + (size_t)MAX(head, 0), size - 1);
        at += tune_describe(tune, names, (double)(SMALLEST << class) / UNIT, out + at, size - at);
        const int tail = snprintf(out + at, size - at, "; %u of %u %s examined\n", tune->explored, tune->uses,
                                  kind == TRAFFIC_ISOLATED ? "messages" : "batches");
        at = MIN(at + (size_t)MAX(tail, 0), size - 1);
    }
    return at;
}
