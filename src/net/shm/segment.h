/* segment.h: the memory that the ranks of one node share: which ranks there are, their doorbells, their
 * rings, and an area for the layers above. It is one memfd, so the size limit of /dev/shm does not apply;
 * pages that are never used take no memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_SHM_SEGMENT_H
#define FP_NET_SHM_SEGMENT_H

#include "base/shlock.h"
#include "net/net.h"
#include "net/shm/ring.h"

#define SEGMENT_CPUS      1024
#define SEGMENT_AREA_SIZE (32u << 20)
#define SEGMENT_SPANS \
    ((uint64_t)1 << 46) /* bytes of the file for spans; sparse, so unused spans take no memory */

/* Data that a rank publishes before it counts as arrived. */
struct segment_rank {
    _Atomic uint32_t present;
    int32_t pid;
    uint64_t probe_address; /* address of a word in private memory, by which peers test cross-memory reads */
    uint64_t probe_value;   /* value of that word */
    uint32_t fence;         /* senders need a fence between their stores and their check for sleepers */
    uint64_t cpus[SEGMENT_CPUS / 64];
    _Alignas(CACHE_LINE) struct doorbell doorbell;
    _Alignas(CACHE_LINE) struct ring ring; /* data and intents of the ring follow */
};

struct segment_head {
    _Atomic uint32_t settings; /* layout that the first rank has set; all ranks must have the same */
    _Atomic uint32_t arrived;  /* number of ranks that have mapped the segment; futex */
    _Alignas(CACHE_LINE) struct shlock area_lock;
    /* Pages that the owner of the lock is marking or clearing. No rank uses them during that time, so they
     * are free if the owner dies. */
    uint32_t area_first, area_count;
    uint64_t area_used[SEGMENT_AREA_SIZE / 4096 / 64]; /* bit set of the pages in use */
    _Atomic uint64_t area_common; /* offset + 1 of the common piece (net_area_get_common); 0: not allocated */
    _Alignas(CACHE_LINE) _Atomic uint64_t spans_used; /* bytes of the spans allocated so far; never reused */
};

struct segment {
    struct segment_head *head;
    char *ranks; /* nlocal blocks of rank_size bytes */
    char *area;
    size_t size, rank_size;
    uint64_t spans; /* offset of the spans in the file; 0: the file has no spans */
    uint32_t nlocal, data_lines;
    int fd;      /* the memory file: spans are mapped from it, and guests find the doorbell in it */
    bool own_fd; /* segment_close closes `fd` */
};

/* Maps the segment of this node (from the launcher, or from the node's first rank) and checks that all ranks
 * use the same settings. */
int segment_open(struct boot *boot, uint32_t data_lines, struct segment *out);
void segment_close(struct segment *s);

static inline struct segment_rank *segment_rank(const struct segment *s, uint32_t local_rank)
{
    return (struct segment_rank *)(s->ranks + s->rank_size * local_rank);
}

/* Announces this rank and waits for the others. An error names the missing ranks. */
int segment_wait_all_present(struct segment *s, struct boot *boot);

/* The number of processors that the ranks of the node together may use. */
uint32_t segment_cpus(const struct segment *s);

/* fdpass.c: the node's first rank sends the descriptor of the segment to the other ranks through a socket,
 * for launchers that do not pass it. */
int fdpass_exchange(struct boot *boot, int *fd);

/* Called by a rank that is alone on its node: joins the collective fence of fdpass_exchange. */
int fdpass_join_barrier(struct boot *boot);

#endif
