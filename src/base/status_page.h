/* status_page.h: the status page of a rank: shared memory that the rank writes with plain stores, and that
 * `fishplate ps` and `fishplate why` read without its cooperation: while the rank computes, hangs, is
 * stopped or holds its lock.
 *
 * The page is a memfd that the rank keeps open. A reader finds it by its name among the files of the user's
 * processes (/proc/PID/fd), which the kernel shows to that user and to root alone. Nothing is left behind
 * when the rank is killed.
 *
 * A call changes only one word (the number of collectives). All other members are written when a rank has
 * waited for PAGE_PATIENCE_MS, between two increments of `version`, which is odd during a change.
 *
 * A reader must check every value: the program may have overwritten the page.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_STATUS_PAGE_H
#define FP_BASE_STATUS_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PAGE_NAME        "fishplate-rank"      /* name of the memfd */
#define PAGE_MAGIC       0x35676150746c7046ull /* "FpltPag5": changes with the layout */
#define PAGE_PATIENCE_MS 50
#define PAGE_TICK_MS     100 /* between two samples of the counts of messages */

enum {
    PAGE_COMMS = 48,
    PAGE_KINDS = 8, /* last collectives of a communicator whose kinds are recorded */
    PAGE_WAITS = 4, /* threads whose waits are recorded */
    PAGE_ITEMS = 16,
    PAGE_GROUPS = 4,
    PAGE_RUNS = 8,
    PAGE_MESSAGES = 12,
    PAGE_LINKS = 8,
    PAGE_PACES = 8,
    PAGE_ANY = -1, /* any rank, any tag */
    PAGE_UNKNOWN = -2,
};

enum page_kind {
    PAGE_RECV,
    PAGE_SEND,
    PAGE_PROBE,
    PAGE_COLL,
    PAGE_CREATION,
    PAGE_STALLED_SEND,
    PAGE_LOCK,  /* a lock that `peer` holds; the label of the wait's first group is its name */
    PAGE_NAMED, /* another event, which the label of the first group names */
    PAGE_OTHER,
    PAGE_KIND_COUNT
};

/* The progress of an item that a rank waits for. */
enum page_step {
    PAGE_POSTED, /* receive: no message has arrived. send: announced, and not yet matched */
    PAGE_QUEUED, /* send: waits for credits, for a free slot or for the connection */
    PAGE_MOVING, /* matched: the data is in transit */
    PAGE_STEP_COUNT
};

/* A message, collective or lock that a rank waits for. */
struct page_item {
    uint8_t kind, step;
    uint8_t coll;  /* PAGE_COLL: enum coll_kind */
    uint8_t group; /* index in the wait's groups; PAGE_GROUPS: not recorded */
    uint32_t context;
    int32_t peer; /* job rank, PAGE_ANY or PAGE_UNKNOWN */
    int32_t rank; /* the peer's rank in the communicator; PAGE_COLL: the root */
    int32_t tag;
    int32_t unused;
    uint64_t bytes;  /* of the message, or of the receive buffer */
    uint64_t number; /* PAGE_COLL: sequence number of the call on its communicator; 0: unknown */
};

/* The members of a communicator, by job rank: first, first + stride, ... in the order of their ranks. */
struct page_run {
    uint32_t first, count;
    int32_t stride;
};
struct page_group {
    uint32_t context;
    int32_t rank, size; /* this process's rank; members (of an intercommunicator's remote group) */
    uint32_t nruns;     /* entries in `runs`; PAGE_RUNS + 1: too many to record */
    struct page_run runs[PAGE_RUNS];
    char label[64];
};

struct page_place {
    uint64_t offset;  /* of the return address in `module` */
    char module[168]; /* path of the program or library */
    char symbol[64];  /* the function, if the file's symbols name it */
};

struct page_wait {
    uint64_t id;             /* unique in the process; 0: the entry is unused */
    uint64_t since;          /* CLOCK_MONOTONIC, ns */
    uint64_t stirs;          /* arrivals of messages during the wait; changed without changing `version` */
    uint64_t recorded_stirs; /* value of `stirs` when the items were written */
    uint32_t thread;
    uint32_t any; /* 1: one item completes the wait; 0: all items do */
    uint32_t nitems, total;
    char call[40];
    struct page_place caller;
    struct page_item items[PAGE_ITEMS];
    struct page_group groups[PAGE_GROUPS];
};

/* A message that arrived before its receive was posted. */
struct page_message {
    int32_t peer, rank, tag;
    uint32_t context;
    uint64_t bytes;
};

/* Collectives on a communicator that this rank has called. */
struct page_comm {
    _Atomic uint32_t used;
    uint32_t context;
    int32_t rank, size;
    uint64_t calls;
    /* Entry n % PAGE_KINDS is the page_kind_entry of call n, or of an older call. */
    uint16_t kinds[PAGE_KINDS];
    char label[40];
};

struct page_link {
    int32_t peer;
    uint32_t unused;
    uint64_t messages, bytes;
    char how[72];
};

/* How fast large messages moved on a link (net/pace.h). */
struct page_pace {
    int32_t peer;
    uint8_t rail, out, local, class; /* out: measured by the sender; class: size class of the messages */
    uint32_t messages;
    uint32_t best; /* ns per 64 KiB in the fastest run */
    uint64_t bytes, ns;
    char how[72];
};

enum page_life { PAGE_ALIVE, PAGE_FINALIZED };

struct page {
    uint64_t magic;
    uint32_t size;
    _Atomic uint32_t version;
    uint32_t rank, ranks, node, nodes, local_rank;
    int32_t pid;
    uint32_t life;
    uint32_t comms_lost; /* communicators without an entry in `comms` */
    uint64_t started;    /* CLOCK_MONOTONIC, ns */
    char job[64], host[64], launcher[16];

    uint64_t ticked; /* time at which the following members were written */
    uint64_t messages, bytes;
    uint64_t sleeps;
    uint64_t unexpected_seen;
    uint32_t nunexpected, nposted;
    uint32_t npeers, nlinks;
    struct page_link links[PAGE_LINKS]; /* the links with most messages */
    uint32_t npaces, paces_known;       /* entries in `paces`, and links with a measured pace */
    struct page_pace paces[PAGE_PACES]; /* the slowest links, compared with others of their kind */

    uint32_t nmessages; /* entries in messages_waiting */
    uint32_t waits_lost;
    struct page_message messages_waiting[PAGE_MESSAGES];
    uint64_t last_id;
    uint64_t waited_ns; /* duration of all recorded waits that have ended */
    struct page_wait waits[PAGE_WAITS];

    struct page_comm comms[PAGE_COMMS];
};

/* Creates this process's status page, zero except for its head. NULL if the system has no memory to share. */
struct page *page_open(int *fd);
void page_close(struct page *page, int fd);

/* Begin and end a change of the page, by one thread at a time. */
static inline void page_begin_change(struct page *page)
{
    const uint32_t v = atomic_load_explicit(&page->version, memory_order_relaxed);
    atomic_store_explicit(&page->version, v | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}
static inline void page_end_change(struct page *page)
{
    const uint32_t v = atomic_load_explicit(&page->version, memory_order_relaxed);
    atomic_store_explicit(&page->version, v + 1, memory_order_release);
}

/* An entry that counts the collectives of a communicator, or NULL if none is free. */
struct page_comm *page_comm_open(struct page *page, uint32_t context, int rank, int size, const char *label);
void page_comm_close(struct page_comm *c);

/* Counts a collective call in two instructions; the fastest collectives take only a hundred instructions. */
static inline void page_comm_count(struct page_comm *c)
{
    c->calls++;
}

/* The kind of a call, with the low bits of the number of the call. */
static inline uint16_t page_kind_entry(uint64_t number, unsigned kind)
{
    return (uint16_t)(number << 5 | (kind & 31));
}
static inline void page_comm_record_kind(struct page_comm *c, unsigned kind)
{
    c->kinds[c->calls % PAGE_KINDS] = page_kind_entry(c->calls, kind);
}
/* The kind of collective call `number`; -1: no longer recorded. */
static inline int page_comm_get_kind(const struct page_comm *c, uint64_t number)
{
    const uint16_t entry = c->kinds[number % PAGE_KINDS];
    return number > 0 && page_kind_entry(number, entry) == entry ? entry & 31 : -1;
}

#endif
