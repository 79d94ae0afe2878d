/* event.h: what will happen when: a queue of events by time. Events of the same time come out in the order in which they were
 * put in, so a run depends on nothing but its input.
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
    uint64_t order; /* of putting in */
    uint32_t kind;  /* belongs to who put it in */
    uint32_t what;  /* index of the link, packet, message or rank it is for */
};

struct event_queue {
    struct event *heap; /* four children each: half as deep as two, and they lie in one cache line or two */
    size_t count, capacity;
    uint64_t order;
    uint64_t taken; /* events so far */
};

/* False when there is no memory; the queue is then as it was. */
bool event_put(struct event_queue *q, sim_time at, uint32_t kind, uint32_t what);
bool event_take(struct event_queue *q, struct event *out); /* false: it is empty */
void event_queue_free(struct event_queue *q);

#endif
