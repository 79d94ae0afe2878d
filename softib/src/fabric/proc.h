/* proc.h: this process as a member of the fabric, and the other members as it sees them. A peer is attached
 * when it is first used: its arena is mapped and its pidfd is watched, so that its death is noticed at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_PROC_H
#define SOFTIB_PROC_H

#include "engine/engine.h"
#include "fabric/shm.h"
#include <pthread.h>
#include <sys/types.h>

struct mr_map { /* a peer's shared memory region, mapped here */
    uint32_t rkey, serial;
    char *base; /* where the region's first byte is */
    void *map;
    void (*unmap)(struct mr_map *m); /* NULL: there is no mapping */
    size_t map_len;
    struct mr_map *next;
};

#define MR_MAPS 512

struct peer {
    uint32_t slot, gen;
    pid_t pid;
    int pidfd;
    struct watch death;
    bool self;
    atomic_bool dead, refused; /* refused: the system forbids to copy to or from its memory */
    atomic_int refs;
    int arena_fd;        /* its descriptor, not ours */
    struct arena *arena; /* the beginning; see peer_arena_address */
    char *extent[ARENA_EXTENTS];
    _Atomic uint64_t mapped;           /* so much of it, from the start */
    atomic_uint unhelped, until_share; /* share.c: copies in a row nobody helped with, how many to do alone */
    struct lock map_lock;
    struct mr_map *maps[MR_MAPS];
    uint32_t map_count, map_limit; /* mapped regions; number at which stale ones are searched */
};

struct proc {
    struct fabric fab;
    struct registry *reg;
    struct arena *arena;
    uint64_t arena_bytes; /* of it are mapped */
    int reg_fd, arena_fd, bell_fd, ring_fd;
    uint32_t slot;
    pid_t pid;
    uint64_t key; /* names of this fabric's sockets */
    struct peer *self;
    pthread_mutex_t peers_lock;
    struct peer *peers[MEMBERS];
    _Atomic uint64_t ud_delivered; /* datagrams that this process brought to a QP: which ones ud_drop takes */
};

extern struct proc proc;

/* What stands above the fabric and works for this process while it is a member. */
struct machine {
    bool (*ready)(void);           /* before anything else; false after saying what is missing */
    bool (*listen)(uint32_t slot); /* takes the network's port numbers of that slot; false: they are taken */
    bool (*start)(void);
    void (*forget)(void); /* in a forked child, which has the descriptors but not the threads */
};

/* Joins the fabric, once; false after saying why not. Safe to call from several threads. */
bool proc_join(const struct machine *m);
bool proc_has_joined(void);
bool proc_fabric(void); /* reads SOFTIB_FABRIC without joining */

/* The member in that slot, attached and referenced; NULL when there is none or it is dead. */
struct peer *peer_get(uint32_t slot);
/* The same; *why is the errno if the member lives but cannot be accessed (which was logged), else 0. */
struct peer *peer_find(uint32_t slot, int *why);
void peer_release(struct peer *p);

uint64_t process_read_start_time(pid_t pid);
/* A pidfd of the process with this start time. -1 with ESRCH if it has ended (a zombie counts as ended). */
int process_open_pidfd(pid_t pid, uint64_t born);
bool process_ended_message(
    void); /* true if errno means that the process has ended, false if the check failed */

/* Wakes the member's engine thread to poll its arena. */
void member_ring(uint32_t slot);
bool member_is_alive(uint32_t slot);
bool member_is_running(uint32_t slot); /* its process does, although it may have left */

/* Sends a token to a completion channel, so that its descriptor becomes readable. */
void chan_ring(uint32_t slot, uint32_t chan);
int chan_open(uint32_t chan);

/* Queues an event for the owner of `p` and rings it. */
void peer_post_event(struct peer *p, enum sh_event_kind kind, uint32_t index, uint32_t detail);

/* Allocates memory of the own arena; the offset from its start, or 0 if none is left. */
uint64_t arena_alloc(size_t bytes);
void arena_free(uint64_t off, size_t bytes);

/* The extent of an arena that contains this offset (beyond ARENA_FIRST); no block spans two extents. */
static inline unsigned arena_extent(uint64_t off)
{
    return 64u - (unsigned)__builtin_clzll(off / ARENA_FIRST);
}

bool peer_map_more(struct peer *p); /* maps what its owner uses by now */
void *peer_map_address(struct peer *p, uint64_t off);

/* The address of an offset in a member's arena; NULL if that extent cannot be mapped. */
static inline void *peer_arena_address(struct peer *p, uint64_t off)
{
    return LIKELY(off < ARENA_FIRST || p->self) ? (char *)p->arena + off : peer_map_address(p, off);
}

static inline void port_count(uint32_t linear, enum counter c, uint64_t n)
{
    atomic_fetch_add_explicit(&proc.reg->tally[proc.slot][linear].count[c], n, memory_order_relaxed);
}

/* Whether an adapter of our node was taken out (softib ctl hca remove). */
static inline bool hca_is_removed(uint32_t hca)
{
    return atomic_load_explicit(&proc.reg->port[fabric_port_index(&proc.fab, proc.fab.node, hca, 1)].gone,
                                memory_order_relaxed);
}

static inline bool port_up(uint32_t linear)
{
    return atomic_load_explicit(&proc.reg->port[linear].up, memory_order_relaxed);
}

#endif
