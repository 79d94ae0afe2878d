/* loop.h: one epoll loop with timers, the only place where mpiexec and its agents wait. Watches and timers
 * are embedded in objects, which may be freed as soon as their watches are removed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_LOOP_H
#define FP_LAUNCHER_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct watch {
    int fd; /* -1: not watched */
    uint32_t events;
    void (*fn)(void *ctx, uint32_t events);
    void *ctx;
};

struct timer {
    uint64_t at; /* expiry time (now_ms); 0: not set */
    void (*fn)(void *ctx);
    void *ctx;
    struct timer *next;
};

struct loop {
    int epoll;
    bool stop;
    struct epoll_event *events; /* events of this iteration not yet dispatched */
    int count;
    struct timer *timers;
};

void loop_init(struct loop *l);

/* Watches a file. False if epoll does not support the file (a regular file), which is then always ready. */
bool loop_add(struct loop *l, struct watch *w, int fd, uint32_t events);
void loop_change_events(struct loop *l, struct watch *w, uint32_t events);

/* loop_remove stops watching; loop_close also closes the file. */
void loop_close(struct loop *l, struct watch *w);
void loop_remove(struct loop *l, struct watch *w);

void loop_set_timer(struct loop *l, struct timer *t, uint64_t ms);
void loop_cancel_timer(struct loop *l, struct timer *t);

/* Runs until l->stop. */
void loop_run(struct loop *l);

#endif
