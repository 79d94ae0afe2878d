/* event.h: a queue of future events, ordered by time. Events of the same time are returned in the order in
 * which they were inserted, so a run depends only on its input. Time does not run backwards: no event is
 * inserted before the time of the event that was removed last.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_EVENT_H
#define FP_SIM_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Picoseconds as whole numbers, so that rounding is the same on all machines. The range is 100 days. */
typedef int64_t sim_time;
#define SIM_NS INT64_C(1000)

static inline sim_time sim_time_from_ns(double nanoseconds)
{
    return (sim_time)(nanoseconds * SIM_NS + 0.5);
}

/* A random number in the open interval from 0 to 1. */
static inline double sim_random_uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}
#define SIM_US INT64_C(1000000)

struct event {
    sim_time at;
    uint32_t kind;  /* meaning defined by the caller of event_insert */
    uint32_t index; /* index of the link, packet, message or rank of the event */
};

enum { EVENT_DIGIT = 6, EVENT_SLOTS = 1 << EVENT_DIGIT, EVENT_LEVELS = (63 + EVENT_DIGIT - 1) / EVENT_DIGIT };

/* Hints for prefetching the memory of an event. SOON_FAR: the event is due within 262 ns. SOON_NEAR:
 * within 4 ns. SOON_NEXT: second call for the same event, which can use the memory that the first call
 * prefetched. Events that are inserted shortly before their time get no hints. */
enum event_soon { SOON_FAR, SOON_NEAR, SOON_NEXT };

struct event_chunk;
struct event_slot {
    struct event_chunk *first, *last;
};

/* Hierarchical timing wheels: see event.c. */
struct event_queue {
    struct event_slot slots[EVENT_LEVELS][EVENT_SLOTS];
    uint64_t used[EVENT_LEVELS]; /* bit s: slots[level][s] is not empty */
    struct event_chunk *spare;
    sim_time base; /* lower bound of all event times */
    size_t count;
    uint64_t taken; /* number of events removed so far */
    bool failed;    /* memory ran out while events were moved; these events are lost */
    /* NULL, or called some time before an event is removed, so that the callee can prefetch memory. */
    void (*prefetch)(void *ctx, const struct event *e, enum event_soon how);
    void *ctx;
};

/* Inserts an event. Returns false if memory runs out; the queue is then unchanged. */
bool event_insert(struct event_queue *q, sim_time at, uint32_t kind, uint32_t what);
/* Removes the first event. Returns false if the queue is empty or an earlier call ran out of memory. */
bool event_pop(struct event_queue *q, struct event *out);
void event_queue_free(struct event_queue *q);

#endif
