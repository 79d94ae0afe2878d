/* notice.h: notices of the deaths of ranks in a job that continues without them (mpiexec
 * -enable-recovery). The launcher shares a memory file with all ranks of a host, appends a notice for
 * every rank that died, and wakes the ranks that wait for one. mpiexec compiles this file, too; depends on
 * libc alone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_NOTICE_H
#define FP_BOOT_NOTICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOTICES_MAX (1u << 20) /* limit of deaths in a job; one more ends the job */

struct notice {
    _Atomic uint32_t full; /* 1: the other members are valid */
    uint32_t rank;         /* rank that died */
    uint64_t world;        /* notice_hash_job of its job */
    uint64_t when;         /* CLOCK_MONOTONIC in ns at which the launcher detected the death */
    uint64_t unused;
};
_Static_assert(sizeof(struct notice) == 32, "two in a cache line");

/* Several launchers append notices (of a job and of the jobs that it spawned); none removes any. Zeroed
 * memory has no notices. The whole page is mapped, but its file is short at first and is extended: only
 * `room` notices may be accessed. */
struct notice_page {
    _Atomic uint32_t reserved;  /* notices that a launcher has begun to write */
    _Atomic uint32_t published; /* notices that are complete; a futex */
    _Atomic uint32_t room;      /* notices that fit in the file */
    char pad[116];
    struct notice notices[NOTICES_MAX];
};

/* Maps the notice page whose file has descriptor `fd`; NULL on failure. */
struct notice_page *notice_map(int fd);
void notice_unmap(struct notice_page *page);

/* Creates the page's file; returns its descriptor, or -1. */
int notice_create(void);

/* Numbers of a job in notices: notice_hash_job in notices of deaths, notice_hash_departures in notices of
 * ranks that ended after MPI_Finalize. Only ranks of the same job read the latter: ranks of other jobs may
 * still have to receive messages of such a rank. */
uint64_t notice_hash_job(const char *job);
uint64_t notice_hash_departures(const char *job);

/* Appends a notice. fd: file of the page. False: the page is full, and neither this death nor later ones are
 * recorded. */
bool notice_add(struct notice_page *page, int fd, uint64_t world, uint32_t rank);

/* Notice number i, or NULL while it is not published. */
const struct notice *notice_get(struct notice_page *page, uint32_t i);

/* Blocks until `published` changes or at_most_ns have passed. */
void notice_wait(struct notice_page *page, uint32_t published, uint64_t at_most_ns);
/* Wakes all waiters without a new notice. */
void notice_wake(struct notice_page *page);

#endif
