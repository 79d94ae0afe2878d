/* engine.h: the engine: one thread per process that sleeps until there is work which the program's own
 * threads cannot do: a task whose time has come (retry, rate, latency), bytes on a descriptor, a peer's
 * request for help. It knows neither queue pairs nor wires; they give it tasks, descriptors and callbacks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_ENGINE_H
#define SOFTIB_ENGINE_H

#include "base/base.h"

/* A descriptor that the engine thread watches. */
struct watch {
    void (*ready)(struct watch *w, uint32_t events);
};

/* Something to run at a time. It runs in the engine thread or in a thread that polls, whichever comes first. */
struct task {
    void (*run)(struct task *t);
    uint64_t due;
    struct task *next;
    atomic_bool queued;
    atomic_int busy; /* how many threads work on it, or on the object it is part of */
};

/* A part of softib that has work to do besides tasks and descriptors. `armed` and `woke` may be NULL. */
struct attendant {
    void (*poll)(void);  /* the program polls: do what can be done now; cheap when there is nothing */
    void (*armed)(void); /* the program is about to sleep until a completion comes */
    int (*sleep)(uint64_t until); /* the engine thread is about to sleep. Returns for how long it may, in ms:
                                     0 not at all, -1 as long as it likes; `until` the next task is due */
    void (*woke)(void);           /* called after the thread slept and handled its descriptors */
};

bool engine_open(void);             /* from here on there are descriptors, tasks and attendants */
bool engine_run(void);              /* starts the thread */
void engine_reset_after_fork(void); /* in a forked child, which has no thread */
void engine_add_attendant(const struct attendant *a);

bool engine_add(int fd, struct watch *w, uint32_t events);
void engine_modify_watch(int fd, struct watch *w, uint32_t events);
void engine_remove_watch(int fd);

/* Runs the task at `due`, or at the earlier time it was deferred to before. */
void engine_defer(struct task *t, uint64_t due);
/* Removes the task from the engine's list and waits until no thread executes it. */
void engine_cancel_task(struct task *t);

static inline bool engine_deferred(const struct task *t)
{
    return atomic_load_explicit(&t->queued, memory_order_relaxed);
}

/* Called by threads that poll completion queues: runs the tasks that are due. Cheap if there are none. */
void engine_poll(void);
/* Called when a completion queue was armed. */
void engine_notify_armed(void);
void engine_wake(void);

#endif
