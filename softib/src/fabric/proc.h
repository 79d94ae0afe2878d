/* proc.h: this process as a member of the fabric, and its records of other members (peers). A peer is
 * attached when it is first used: its arena is mapped and its pidfd is watched, so that its death is
 * detected immediately.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_PROC_H
#define SOFTIB_PROC_H

#include "engine/engine.h"
#include "fabric/shm.h"
#include <pthread.h>
#include <sys/types.h>

/* A mapping of a peer's memory region that is shared memory. */
struct mr_map {
    uint32_t rkey, serial;
    char *base; /* address of the region's first byte */
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
    atomic_bool dead;
    atomic_bool refused; /* the system does not permit copies to or from its memory */
    atomic_int refs;
    int arena_fd;        /* the arena's file descriptor number in the peer */
    struct arena *arena; /* first extent of the arena; see peer_arena_address */
    char *extent[ARENA_EXTENTS];
    _Atomic uint64_t mapped; /* bytes of the arena that are mapped, from its start */
    atomic_uint unhelped;    /* consecutive shared copies with which the peer did not help */
    atomic_uint until_share; /* copies to make alone before the next shared one */
    struct lock map_lock;
    struct mr_map *maps[MR_MAPS]; /* hash table of mapped regions */
    uint32_t map_count;           /* mapped regions */
    uint32_t map_limit; /* value of map_count at which mappings of deregistered regions are removed */
};

struct proc {
    struct fabric fab;
    struct registry *reg;
    struct arena *arena;
    uint64_t arena_bytes; /* mapped bytes of this process's arena */
    int reg_fd, arena_fd; /* memory files of the registry and of the arena */
    int bell_fd;          /* socket that receives doorbells of other members */
    int ring_fd;          /* socket that sends doorbells to other members */
    uint32_t slot;
    pid_t pid;
    uint64_t key; /* part of the names of this fabric's sockets */
    struct peer *self;
    pthread_mutex_t peers_lock;
    struct peer *peers[MEMBERS];
    _Atomic uint64_t ud_delivered; /* number of datagrams that this process delivered, for ud_drop */
};

extern struct proc proc;

/* Functions of the modules above the fabric that proc_join calls. */
struct machine {
    bool (*ready)(void);           /* called first; false: a requirement is missing, which was logged */
    bool (*listen)(uint32_t slot); /* binds the network ports of the slot; false: they are in use */
    bool (*start)(void);           /* called after the process has joined */
    void (*forget)(void);          /* called in a forked child, which has descriptors but no threads */
};

/* Joins the fabric if this process has not joined yet. Returns false after printing a message.
 * Thread-safe. */
bool proc_join(const struct machine *m);
bool proc_has_joined(void);
bool proc_read_fabric(void); /* reads SOFTIB_FABRIC without joining */

/* Returns the member in the slot, attached, with a reference; NULL: the slot is free or its member is
 * dead. */
struct peer *peer_get(uint32_t slot);
/* Like peer_get. *why: the errno if the member is alive but cannot be accessed (which was logged), else 0. */
struct peer *peer_find(uint32_t slot, int *why);
void peer_release(struct peer *p);

uint64_t process_read_start_time(pid_t pid);
/* A pidfd of the process with this start time. -1 with ESRCH if it has ended (a zombie counts as ended). */
int process_open_pidfd(pid_t pid, uint64_t born);
/* True if errno of process_open_pidfd means that the process has ended; false: the check itself failed. */
bool process_errno_means_ended(void);

/* Wakes the member's engine thread to poll its arena. */
void member_ring(uint32_t slot);
bool member_is_alive(uint32_t slot);
bool member_is_running(uint32_t slot); /* the process exists, although it may have left the fabric */

/* Sends a token to a completion channel, so that its descriptor becomes readable. */
void channel_send_token(uint32_t slot, uint32_t chan);
int channel_open_socket(uint32_t chan);

/* Queues an event for the owner of `p` and rings it. */
void peer_post_event(struct peer *p, enum sh_event_kind kind, uint32_t index, uint32_t detail);

/* Allocates memory in this process's arena. Returns its offset in the arena; 0: none is left. */
uint64_t arena_alloc(size_t bytes);
void arena_free(uint64_t off, size_t bytes);

/* The extent of an arena that contains this offset (beyond ARENA_FIRST); no block spans two extents. */
static inline unsigned arena_extent(uint64_t off)
{
    return 64u - (unsigned)__builtin_clzll(off / ARENA_FIRST);
}

bool peer_map_more(struct peer *p); /* maps the part of the arena that its owner uses now */
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

/* True if the adapter of this node was removed (softib ctl hca remove). */
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
