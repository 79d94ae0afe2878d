/* event.h: what will happen when: a queue of events by time. Events of the same time come out in the order in which they were
 * put in, so a run depends on nothing but its input. Time does not run backwards: nothing is put in before the event that
 * was taken last.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_EVENT_H
#define FP_SIM_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Picoseconds: whole numbers, so that no machine rounds differently. 100 days fit. */
typedef int64_t sim_time;
#define SIM_NS INT64_C(1000)
#define SIM_US INT64_C(1000000)

struct event {
    sim_time at;
    uint32_t kind; /* belongs to who put it in */
    uint32_t what; /* index of the link, packet, message or rank it is for */
};

enum { EVENT_DIGIT = 6, EVENT_SLOTS = 1 << EVENT_DIGIT, EVENT_LEVELS = (63 + EVENT_DIGIT - 1) / EVENT_DIGIT };

/* Hints of the queue, so that memory of an event can be prefetched: the event is among those of the next 262 ns; among those of
 * the next 4 ns; and a second pass over these, which can read what the first one prefetched. Events at short notice have no hints. */
enum event_soon { SOON_FAR, SOON_NEAR, SOON_NEXT };

struct event_chunk;
struct event_slot {
    struct event_chunk *first, *last;
};

/* Wheels of wheels: see event.c. */
struct event_queue {
    struct event_slot slots[EVENT_LEVELS][EVENT_SLOTS];
    uint64_t used[EVENT_LEVELS]; /* bit s: slots[level][s] is not empty */
    struct event_chunk *spare;
    sim_time base; /* no event is before it */
    size_t count;
    uint64_t taken; /* events so far */
    bool failed;    /* memory ran out while events were moved: they are lost */
    /* NULL, or: the event will be taken soon, so what it needs may be fetched from memory while others happen. */
    void (*soon)(void *ctx, const struct event *e, enum event_soon how);
    void *ctx;
};

/* Inserts an event; false without memory, with the queue unchanged. */
bool event_put(struct event_queue *q, sim_time at, uint32_t kind, uint32_t what);
bool event_pop(struct event_queue *q, struct event *out); /* false: it is empty, or it failed */
void event_queue_free(struct event_queue *q);

#endif
