/* net.h: the transports of this process, its peers, progress, and waiting (polling, then yielding, then
 * sleeping).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_NET_H
#define FP_NET_NET_H

#include <stdatomic.h>

#include "base/biglock.h"
#include "base/err.h"
#include "base/list.h"
#include "net/pace.h"
#include "net/peer.h"
#include "net/transport.h"

#define NET_TRANSPORTS_MAX 4

struct net_waiter;
struct request_set;

/* A word on which threads of a process sleep (futex), in shared memory if there is any. A process that
 * delivers data to the owner rings the doorbell. */
struct doorbell {
    _Atomic uint32_t rings;    /* the futex: number of rings */
    _Atomic uint32_t sleepers; /* threads of the owner that are about to sleep or asleep */
};

/* Background work of upper layers (collective schedules, ...): called on every progress. Returns events
 * handled. */
struct net_hook {
    struct list link;
    int (*progress)(struct net_hook *hook);
    /* Returns the time in ns after which `progress` must be called even if no doorbell rings; NET_FOREVER: never. NULL: `progress` must be
     * called all the time, and the progress thread does not sleep. */
    uint64_t (*rests)(struct net_hook *hook, uint64_t now);
};
#define NET_FOREVER UINT64_MAX

struct net {
    struct boot *boot;
    uint32_t rank, size;
    uint64_t world;                                   /* hash of the job's name: equal in all its ranks */
    struct transport *transports[NET_TRANSPORTS_MAX]; /* best first, inner ones last (transport.inner) */
    int ntransports;
    int nouter;            /* number of transports that receive messages of other processes */
    struct peer **peers;   /* by job rank; NULL: never used. Peers of guests: guest.h */
    struct guests *guests; /* processes of other worlds; NULL: none was ever connected */
    struct list stalled;   /* peers with pending work */
    struct list hooks;
    struct list groups, group_notes; /* multicast (mcast_group.h) */
    struct peer *revoked_peer;       /* net_get_revoked_peer; NULL: never needed */
    struct net_lost *lost;           /* processes that have died; NULL: a death ends the job */
    const _Atomic uint32_t
        *notices;           /* changes when the launcher reports a death; NULL: a death ends the job */
    uint32_t lost_seen;     /* value of *notices when it was last read */
    uint32_t ndead;         /* processes of this and other jobs that were lost (net/lost.h) */
    uint32_t unrung;        /* awaited events that ring no doorbell (memory writes): sleeps are short */
    bool multicast_refused; /* joining a multicast group failed: joined again only on request */
    bool published;         /* a transport published keys in the boot layer that peers will read */
    char *why_missing;      /* why a transport could not be opened; NULL: all were opened */
    struct doorbell *_Atomic doorbell; /* a thread may replace it while others ring it */
    struct doorbell own_doorbell;      /* used when no transport shares memory */
    int doorbell_fd;                   /* memory file of the doorbell, for guests; -1: private memory */
    uint64_t doorbell_offset;
    bool oversubscribed;  /* more ranks on this node than processors: never spin */
    bool fences;          /* see net_fence_before_sleep_check */
    int cpus;             /* processors that this process may use */
    int waiting;          /* threads in net_wait, of a threaded process */
    struct biglock *lock; /* the big lock, released during sleep; NULL: the process is not threaded */
    const struct net_doctor *doctor; /* called for long waits; NULL: no diagnosis */
    uint64_t ticked;                 /* when doctor->tick was last called, in ns */
    struct paces paces;              /* speed of large messages, by link */
    struct net_thread *thread;       /* makes progress while the program computes; NULL: not requested */

    /* Receives all frames; set by p2p. The payload is valid only during the call. */
    void (*deliver)(void *ctx, struct peer *from, const struct frame_header *header, const void *payload,
                    size_t len);
    /* A peer was connected: p2p fills in its protocol limits. May be NULL. */
    void (*connected)(void *ctx, struct peer *peer);
    /* A process has died (lost.h); peer: NULL when it was never used. May be NULL. */
    void (*died)(void *ctx, uint32_t number, struct peer *peer);
    /* Called when a connection failed before this put or get was reported as complete: may it be repeated?
     * *number identifies the transfer to the peer. NULL: every transfer is repeated. */
    enum net_delivery_status (*fate)(void *ctx, struct net_op *op, uint64_t *number);
    /* Called at the peer of a failed connection: true if the transfer with that number has completed in this
     * process, so that none of its data is in flight any more. */
    bool (*has_arrived)(void *ctx, const struct peer *from, uint64_t number);
    /* A process of another job has disconnected: p2p frees its state. May be NULL. */
    void (*parted)(void *ctx, struct peer *peer);
    void *deliver_ctx;

    /* Called at most every 100 ms by a thread that is about to sleep in this wait: upper layers check for mistakes of the program
     * that would keep the thread asleep for ever. May be NULL. */
    void (*look)(void *arg, const struct net_waiter *w);
    void *look_arg;
    uint64_t looked; /* when `look` was last called, in ns */

    /* Memory shared by all ranks of this node, for upper layers (collectives); NULL when there is none.
     * Offsets mean the same in every process of the node. See net_area_alloc. */
    char *area;
    size_t area_size;
    struct transport *local; /* transport that shares this memory and has the node's doorbells; NULL: none */
};

int net_open(struct boot *boot, struct net **out);
void net_close(struct net *net);

/* Called once frames can be delivered: opens the connections that were requested at the start. */
int net_open_requested_connections(struct net *net);

/* Called before the layers above close: waits until all sends are complete. together: all ranks call it. */
void net_finish(struct net *net, bool together);

/* Describes the adapter between nodes for users: name and kind. "" if the job runs on one node. */
void net_adapter(const struct net *net, char *out, size_t size);

/* Adds an open transport. */
void net_add_transport(struct net *net, struct transport *t);

/* The transport that reaches this process, or NULL. */
struct transport *net_transport_for(struct net *net, uint32_t number);

/* The peer with this job rank or number of a guest, connected on first use. */
int net_peer(struct net *net, uint32_t rank, struct peer **out);

/* Starts measuring a large message on a link (pace.h); the mark is stored with the request until the end. A
 * transport with several rails may measure each of them; p2p records the whole link as rail 0. */
static inline struct pace_mark peer_pace_begin(const struct peer *peer, enum pace_direction direction,
                                               uint64_t now)
{
    return pace_mark(&peer->net->paces, peer->local, direction, now);
}
static inline void peer_pace_end(struct peer *peer, enum pace_direction direction, uint8_t rail,
                                 uint64_t bytes, struct pace_mark mark, uint64_t now)
{
    const struct pace who = {
        .rank = peer->rank, .rail = rail, .direction = (uint8_t)direction, .local = peer->local};
    pace_record_transfer(&peer->net->paces, &peer->paces, &who, bytes, mark, now);
}

/* Polls all transports once, resumes stalled peers, runs hooks. Returns the number of events handled. */
int net_progress(struct net *net);

/* Runs progress until *flag is non-zero: spins, then yields, then sleeps on the doorbell. The flag is
 * `complete` of a request, which the hang diagnosis reads; it is set by code that runs inside progress, in this
 * or another thread of the process. `all`: the set of requests that are awaited
 * together, for diagnosis; NULL: the flag alone is awaited. */
void net_wait_among(struct net *net, const _Atomic int *flag, const struct request_set *all);
static inline void net_wait(struct net *net, const _Atomic int *flag)
{
    net_wait_among(net, flag, NULL);
}

/* One step of waiting for a condition the caller checks itself:
 *     struct net_waiter w = {.ready = my_condition, .arg = &my_state};
 *     while (!my_condition(&my_state)) net_wait_step(net, &w);
 * When other processes change the condition by writing to shared memory (and then call net_wake_local_rank),
 * `ready` must be given: it is checked once more after this process has announced that it sleeps. When only
 * code that runs inside progress changes it, `ready` may be NULL.
 */
/* The awaited event, for diagnosis. NET_UNRECORDED: net->doctor is not called. After all other waits
 * net_wait_end must be called. */
enum net_awaited {
    NET_UNRECORDED,
    NET_NAMED, /* struct net_named */
    NET_FLAG,  /* `complete` of a request */
    NET_ANY_OF,
    NET_ALL_OF,
    NET_MESSAGE,
    NET_MEMBERS,
    NET_ROOM,
    NET_PEER /* room for a message at one peer */
};
/* A wait with a name for the diagnosis, and possibly one process that can end it. */
struct net_named {
    const char *name; /* without an article: "lock of ...", "answer to ..." */
    uint32_t rank;    /* job rank, or NET_NOBODY: several, or not known */
    bool is_lock;     /* the wait is for a lock that `rank` holds */
};
#define NET_NOBODY UINT32_MAX
struct net_waiter {
    bool (*ready)(void *arg);
    void *arg;
    /* For diagnosis (fishplate why): the kind of wait, and its flag, requests, envelope, communicator or peer. */
    enum net_awaited awaited_kind;
    const void *awaited;
    uint64_t record_id; /* number of the record in the diagnosis page; 0: not recorded yet */
    uint64_t begun;     /* when the clock was first read, in ns */
    uint64_t shown;     /* when the diagnosis page was last updated, in ns */
    bool stirred;       /* something has arrived since the last update */
    unsigned idle;      /* consecutive steps without an event */
    unsigned look;      /* value of `idle` at which the clock is read next */
    unsigned refused;   /* consecutive sleeps that a transport refused although no event followed */
    uint64_t since;     /* when spinning began, in ns; 0: the clock was not read yet */
};
void net_wait_step(struct net *net, struct net_waiter *w);
/* Yields the processor, so that ranks that wait for a result of this rank can run. */
void net_yield(struct net *net);

/* Callbacks of the hang diagnosis, called with the lock held. waits: a wait has lasted for PAGE_PATIENCE_MS,
 * or its record must be updated. stirs: something arrived during a recorded wait. ends: a recorded wait has
 * ended. tick: called every PAGE_TICK_MS while a process waits. */
struct net_doctor {
    void (*waits)(struct net *net, struct net_waiter *w);
    void (*stirs)(struct net *net, struct net_waiter *w);
    void (*ends)(struct net *net, struct net_waiter *w);
    void (*tick)(struct net *net, uint64_t now);
};
void net_wait_update_record(struct net *net, struct net_waiter *w) __attribute__((cold));
/* Called only with net->doctor by a thread that waits without net_wait_step and has nothing to do at this moment. */
void net_wait_update_idle(struct net *net, struct net_waiter *w, uint64_t now);

/* Ends a wait: removes its record from the diagnosis page. */
static inline void net_wait_end(struct net *net, struct net_waiter *w)
{
    if (unlikely(w->record_id != 0))
        net_wait_update_record(net, w);
}

/* The shortest time in ns after which a hook must be called (net_hook.rests). all: hooks without `rests` count as 0; else they are
 * ignored. Under the lock. */
uint64_t net_hooks_next_deadline(const struct net *net, bool all);

/* True if something is awaited that rings no doorbell: room for queued sends, or bytes that a peer writes. */
static inline bool net_has_unsignalled_wait(const struct net *net)
{
    return !list_empty(&net->stalled) || net->unrung != 0;
}

/* The steps of sleeping: read doorbell.rings; net_sleep_begin (announces a sleeper and arms the transports; false if something
 * has arrived already); net_sleep (blocks without the lock until the doorbell has rung since, or for at_most_ns; 0: no limit);
 * net_sleep_end. */
bool net_sleep_begin(struct net *net);

/* True if a process has died since the last check. Requires net->notices. */
static inline bool net_has_new_deaths(const struct net *net)
{
    return atomic_load_explicit(net->notices, memory_order_acquire) != net->lost_seen;
}
#define NET_NAP_NS 50000 /* longest sleep while an event is awaited that rings no doorbell */
void net_sleep(struct net *net, uint32_t rings, uint64_t at_most_ns);
void net_sleep_end(struct net *net);

/* Rings a doorbell unconditionally: for transports that have found sleepers. */
void net_doorbell_ring(struct doorbell *bell);

/* Wakes this process's sleeping threads, after a change of a condition that another thread may wait for.
 * Inexpensive if no thread sleeps. */
void net_ring_own_doorbell(struct net *net);

/* Orders a store to the node's shared memory before the check whether the waiting process sleeps. If sleepers
 * execute a barrier for all processes (membarrier), only the compiler must preserve the order: a fence here
 * would cost as much as the transfer of a cache line. */
static inline void net_fence_before_sleep_check(const struct net *net)
{
    if (unlikely(net->fences))
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst);
}

/* The doorbell of a process of this node, by its rank in the job. */
static inline struct doorbell *net_bell_local(const struct net *net, uint32_t rank)
{
    return net->local->ops->doorbell(net->local, rank);
}
void net_wake_doorbell(struct doorbell *bell) __attribute__((cold));
/* Wakes the process of the doorbell if it sleeps, since memory that it may wait for was changed: inexpensive while it is awake.
 * Orders the caller's earlier stores before the load of `sleepers`, as net_fence_before_sleep_check does. */
static inline void net_wake_local_doorbell(const struct net *net, struct doorbell *bell)
{
    net_fence_before_sleep_check(net);
    if (unlikely(atomic_load_explicit(&bell->sleepers, memory_order_relaxed) != 0))
        net_wake_doorbell(bell);
}

static inline void net_wake_local_rank(struct net *net, uint32_t rank)
{
    net_wake_local_doorbell(net, net_bell_local(net, rank));
}

/* Pieces of the node's shared area, zero-filled, cache-line aligned. Any rank of the node may allocate a
 * piece and send its offset to the others; the last user frees it. MPI_ERR_NO_MEM if the area is full
 * (callers fall back). */
int net_area_alloc(struct net *net, size_t len, uint64_t *offset);
/* As net_area_alloc, but without clearing the memory. */
int net_area_alloc_untouched(struct net *net, size_t len, uint64_t *offset);
/* Returns a zeroed piece that all ranks of the node share; the first caller allocates it. Only one such piece
 * exists in a job, for the transport between nodes. */
int net_area_get_common(struct net *net, size_t len, uint64_t *offset);
/* Populates pages of the area where the kernel offers that (MADV_POPULATE_WRITE). */
void net_area_populate(struct net *net, uint64_t offset, size_t len);
/* True if more than half of the area is free. Reads without the lock: only a hint. */
bool net_area_has_free_pages(const struct net *net);
void net_area_free(struct net *net, uint64_t offset, size_t len);

/* Spans: memory of any size that the ranks of the node share (windows). One rank allocates a span and sends
 * its number to the others; each rank that needs the span maps it; the rank that allocated it discards its
 * pages when all have unmapped it. MPI_ERR_NO_MEM if there are no spans (callers fall back to private
 * memory). The memory is zero and takes no pages until it is touched. */
int net_span_alloc(struct net *net, size_t len, uint64_t *span);
/* Returns the start of a permanent span, which need not be allocated: NET_SPAN_OWN bytes for each rank of the
 * node, in the order of local ranks. */
#define NET_SPAN_OWN ((uint64_t)1 << 20)
int net_span_get_own(struct net *net, uint64_t *span);
int net_span_map(struct net *net, uint64_t span, size_t len, void **address);
void net_span_unmap(void *address, size_t len);
void net_span_discard_pages(struct net *net, uint64_t span, size_t len);

#endif
