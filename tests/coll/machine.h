/* machine.h: a simulated machine that runs the schedules of all ranks on symbolic values. It stores a message about
 * the first error.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_COLL_MACHINE_H
#define FP_TESTS_COLL_MACHINE_H

#include "coll/sched/algorithm.h"

#define RANKS_MAX 64

/* A symbolic value: item `item` of the contributions of these ranks, combined from left to right. n = 0:
 * never written. */
struct value {
    int32_t item;
    uint8_t n;
    uint8_t rank[RANKS_MAX + 3];
};

struct memory {
    struct value *v;
    int64_t items;
    bool constant;
};

struct flight {
    uint8_t buf;
    bool incoming;
    int64_t at, count;
};

struct message {
    int64_t at, count;
    uint8_t buf;
    bool matched;
};

/* The messages from one process to another, in order; match number k is send k with receive k. */
struct channel {
    struct message *sends, *receives;
    int nsends, nreceives, csends, creceives, matched;
};

struct process {
    struct coll_shape shape;
    struct sched sched;
    struct memory mem[SCHED_BUFS];
    uint32_t next;
    int pending;
    uint64_t arrived[2]; /* barriers: by group, bit set of the ranks known to have arrived */
    struct flight *flights;
    int nflights, cflights;
    bool done;
};

/* Processes 0 .. size-1 are one group, the rest the other group of an intercommunicator. */
struct machine {
    int nprocs, size;
    struct process *procs;
    struct channel *channels;   /* indexed by from * nprocs + to */
    int *dirty, ndirty, cdirty; /* channels that may have a match */
    char error[512];
};

void machine_open(struct machine *m, int size, int remote_size);
void machine_close(struct machine *m);

/* Sets the size of a process's buffer; all values are empty. */
void machine_buffer(struct machine *m, int proc, enum sched_buf buf, int64_t items, bool constant);
void machine_set(struct machine *m, int proc, enum sched_buf buf, int64_t at, int rank, int64_t item);

/* Runs all schedules with their temporary buffers. Returns false on an error, described in `error`. */
bool machine_run(struct machine *m);

void machine_fail(struct machine *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sched_print(const struct sched *s, int rank);

#endif
