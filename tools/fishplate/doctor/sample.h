/* sample.h: one sample of a job: the page of each rank (base/status_page.h) and what the system reports about
 * its process. Pages come from processes that may have failed, so they are checked before anything reads
 * them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_SAMPLE_H
#define FP_DOCTOR_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status_page.h"

struct sample {
    uint64_t now; /* CLOCK_MONOTONIC (ns) of the rank's host when the page was read */
    uint64_t cpu_ns;
    uint64_t memory; /* resident, bytes */
    int32_t pid;
    uint32_t user; /* owner of the page; of a page on another host: user of the mpiexec that sent it */
    char state;    /* 0: not seen. Else as in /proc/PID/stat: R, S, D, T, t, Z */
    bool away;     /* on another host, where `pid` is valid */
    bool torn;     /* copied while the rank wrote, or was stopped in a write: waits may be inconsistent */
    struct page page;
};

/* Samples of one job, by rank. */
struct snapshot {
    char job[64];
    uint32_t user; /* other users' pages may name the same job */
    uint32_t ranks;
    struct sample **samples; /* [ranks]; NULL: not seen */
    uint32_t seen;
};

struct snapshots {
    struct snapshot *jobs;
    size_t count;
    size_t foreign;     /* bytes of other users' pages and answers, which only root reads */
    bool is_incomplete; /* other users had more than FOREIGN_MAX bytes */
};

enum { RANKS_MAX = 1 << 20 };

/* Terminates the string and replaces control characters, which could affect a terminal. */
void sample_sanitise_text(char *text, size_t size);

/* Terminates the strings of a page and limits counts and indices. False if it is not of this version. */
bool page_check(struct page *page);

/* Sets the owner of a sample's page. Of pages of other users, which only root sees, the paths of programs are
 * shortened to their names: root must not open files that other users name. */
void sample_set_user(struct sample *s, uint32_t user);

/* Samples all jobs of this user on this machine, and on other hosts through their mpiexec
 * (sample_remote.c); for root the jobs of all users. Returns 0 or errno. */
int snapshots_take_all(struct snapshots *out);

/* Samples the jobs on this machine only. Returns 0 or errno. */
int snapshots_take_host(struct snapshots *out);

void snapshots_free(struct snapshots *l);

/* Counts bytes that belong to this user. False if other users would have more than FOREIGN_MAX together: their
 * processes must not take all memory or time of root's command. */
enum { FOREIGN_MAX = 512 << 20 };
bool snapshots_account(struct snapshots *l, uint32_t user, size_t bytes);

/* Adds a sample to its job; false if the rank does not fit into the job, or if out of memory. */
bool snapshots_add(struct snapshots *l, const struct sample *s);

/* Selects a job. which: its name or a unique part of it, or the process id of a rank or of its mpiexec;
 * NULL: the only job. On failure returns NULL, with a sentence in *why. */
struct snapshot *snapshots_choose(struct snapshots *l, const char *which, const char **why);

/* Finds the same job in another list of jobs; NULL if it is missing there. */
const struct snapshot *snapshots_find_same(const struct snapshots *l, const struct snapshot *job);

/* Encodes samples for another host with zeros compressed (sample_wire.c). */
void sample_write(FILE *out, const struct sample *s);

enum { SAMPLE_WIRE_MAX = (int)(2 * sizeof(struct sample)) };

/* Decodes and verifies the first sample of these bytes. Returns its length; 0: incomplete, -1: invalid. */
long sample_read(const void *bytes, size_t size, struct sample *out);

/* Parent of a process from /proc; 0 if the process has ended. */
int process_parent(int pid);
/* Start time in seconds since boot; -1: the process has ended. */
double process_started(int pid);

#endif
