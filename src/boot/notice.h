/* notice.h: how ranks hear of the death of others in a job that goes on without them (mpiexec -enable-recovery). The
 * launcher gives all ranks of a host one memory, in which it appends a line for every rank that died, and wakes those
 * who wait for the next one. mpiexec and the ranks include this file; it needs libc alone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_NOTICE_H
#define FP_BOOT_NOTICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOTICES_MAX (1u << 20) /* deaths in the life of a job; more end it */

struct notice {
    _Atomic uint32_t full; /* 1 when the rest is there */
    uint32_t rank;
    uint64_t world; /* hash of the name of its job */
    uint64_t when;  /* of CLOCK_MONOTONIC, in ns: when the launcher knew */
    uint64_t unused;
};
_Static_assert(sizeof(struct notice) == 32, "two in a cache line");

/* Several launchers may write (a job and those that it spawned), and nobody erases. Memory of zeros has no notices. All of it
 * is mapped, but the file behind it begins small and grows: only as many notices as there is room for may be touched. */
struct notice_page {
    _Atomic uint32_t reserved;
    _Atomic uint32_t published; /* the futex */
    _Atomic uint32_t room;
    char pad[116];
    struct notice notices[NOTICES_MAX];
};

/* Maps the page behind a descriptor; NULL on failure. */
struct notice_page *notice_map(int fd);
void notice_unmap(struct notice_page *page);

/* Creates the page's file; returns its descriptor, or -1. */
int notice_create(void);

/* The number that stands for a job's name in notices of deaths; and in notices of ranks that have ended after MPI_Finalize, which only
 * ranks of the same job read: ranks of other jobs may still have messages of such a rank to receive. */
uint64_t notice_hash_job(const char *job);
uint64_t notice_hash_departures(const char *job);

/* fd: of the page. False: the page is full, and neither this death nor later ones are recorded. */
bool notice_add(struct notice_page *page, int fd, uint64_t world, uint32_t rank);

/* Notice number i, or NULL while it is not published. */
const struct notice *notice_get(struct notice_page *page, uint32_t i);

/* Blocks until `published` changes or at_most_ns have passed. */
void notice_wait(struct notice_page *page, uint32_t published, uint64_t at_most_ns);
/* Wakes all waiters without a new notice. */
void notice_wake(struct notice_page *page);

#endif
