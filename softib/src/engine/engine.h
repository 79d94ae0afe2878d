/* engine.h: the engine: one thread per process for work that the program's own threads cannot do: tasks at
 * a given time (retry, rate, latency), input of descriptors, requests for help from peers. It sleeps if
 * there is none. It does not depend on queue pairs and wires, which give it tasks, descriptors and
 * callbacks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_ENGINE_H
#define SOFTIB_ENGINE_H

#include "base/base.h"

/* A descriptor that the engine thread watches. */
struct watch {
    void (*ready)(struct watch *w, uint32_t events);
};

/* A function to run at a given time, in the engine thread or in a polling thread, whichever is first. */
struct task {
    void (*run)(struct task *t);
    uint64_t due;
    struct task *next;
    atomic_bool queued;
    atomic_int busy; /* number of threads that use the task or the object of which it is a part */
};

/* Callbacks of a module that has work besides tasks and descriptors. `armed` and `woke` may be NULL. */
struct attendant {
    void (*poll)(void);  /* called when the program polls; fast if there is no work */
    void (*armed)(void); /* called when the program armed a CQ and may sleep until its event */
    /* Called before the engine thread sleeps. until: time of the next task. Returns the longest sleep in
     * ms; 0: none; -1: no limit. */
    int (*sleep)(uint64_t until);
    void (*woke)(void); /* called after the engine thread slept and handled its descriptors */
};

bool engine_open(void);             /* initialises the engine: tasks may be added */
bool engine_run(void);              /* starts the engine thread */
void engine_reset_after_fork(void); /* called in a forked child, which has no engine thread */
void engine_add_attendant(const struct attendant *a);

bool engine_add(int fd, struct watch *w, uint32_t events);
void engine_modify_watch(int fd, struct watch *w, uint32_t events);
void engine_remove_watch(int fd);

/* Runs the task at `due`, or earlier if it is already deferred to an earlier time. */
void engine_defer(struct task *t, uint64_t due);
/* Removes the task from the engine's list and waits until no thread executes it. */
void engine_cancel_task(struct task *t);

static inline bool engine_is_deferred(const struct task *t)
{
    return atomic_load_explicit(&t->queued, memory_order_relaxed);
}

/* Called by threads that poll completion queues: runs the tasks that are due. Fast if there are none. */
void engine_poll(void);
/* Called when a completion queue was armed. */
void engine_notify_armed(void);
void engine_wake(void);

#endif
