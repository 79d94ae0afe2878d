/* rma.h: what the files of src/rma share: the peers of a window, the frames they exchange, and operations that wait
 * for an answer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_RMA_RMA_H
#define FP_RMA_RMA_H

#include <string.h>

#include "gpu/gpu.h"
#include "p2p/ids.h"
#include "rma/directory.h"
#include "rma/win.h"

/* frame_header.flags. context names the window, source is the sender's rank in it. */
enum rma_frame {
    RMA_PUT,     /* payload: word bytes of data, tag runs */
    RMA_GET,     /* payload: struct rma_ask, tag runs */
    RMA_ACC,     /* aux: element; tag: spans | operator << 24; word: bytes of data; payload: data, spans */
    RMA_GET_ACC, /* the same with a struct rma_ask in front */
    RMA_SWAP,    /* aux: element; payload: struct rma_ask, struct rma_swap */
    RMA_REPLY,   /* word: cookie; payload: position, data */
    RMA_FLUSH,   /* word: number; answered when everything before it is done */
    RMA_FLUSHED, /* word: the number; aux: error class of an operation before it */
    RMA_LOCK,    /* aux: lock type */
    RMA_LOCKED,
    RMA_UNLOCK, /* aux: lock type; word: number; answered as RMA_FLUSH is */
    RMA_POST,   /* payload: none, or where counters of the sender are (counts.c) */
    RMA_COMPLETE,
    RMA_COUNTS, /* payload: the same, as an answer */
    RMA_WHERE,  /* what is your part of the window? */
    RMA_HERE, /* payload: struct win_target. aux 1: an answer; 0: unasked, word: the window's serial number */
    RMA_WATCH, /* FISHPLATE_DEBUG=rma: what the sender does to the memory here; payload: struct watched */
};

struct rma_ask {
    uint64_t cookie;   /* of the origin's operation */
    uint64_t position; /* of this piece in its packed data */
};
/* Pieces of the target's memory: `count` of `length` bytes at a stride. */
struct rma_run {
    uint64_t offset, length, stride, count;
};
/* `count` elements, one extent apart. */
struct rma_span {
    uint64_t offset, count;
};
struct rma_swap {
    uint64_t offset;
    char value[16], compare[16];
};
#define RMA_RUNS_MAX  64
#define RMA_CHUNK_MAX 32768u /* bytes of a frame that are used at most */
#define RMA_UNDER_WAY 64     /* answers that may be outstanding from one target */
#define RMA_QUEUED    128    /* frames that may wait for room before a call waits with them */

/* A rank of this node that is entering a gate. */
struct near_entry {
    struct win_slot *slot;
    struct gate_entry entry;
    uint64_t old;
    uint32_t rank;           /* for which job rank */
    struct net_named awaits; /* the lock, with its holder where known */
};

/* State for another rank of a window, from its first access on. */
struct win_peer {
    struct list busy; /* win->busy */
    struct win *win;
    struct peer *peer;
    int rank;
    bool known; /* what follows is filled in: at its first access by this process (peer_learn_window) */
    uint64_t announced; /* serial number of the window for which RMA_HERE has filled in `at` */
    struct win_target at;
    char *direct;          /* its memory, mapped here; NULL: not reachable by loads and stores */
    void *mapping;         /* what has to be unmapped */
    struct win_slot *slot; /* its lock, reachable by atomics; or NULL */
    bool here;             /* direct may be used: it may be NULL and yet right (dynamic window, oneself) */
    int lock;              /* held by this process: 0, MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE */
    bool lock_nocheck;
    bool acquiring; /* a thread is about to take its lock */
    bool granted;   /* ... and RMA_LOCK was answered */
    bool started;   /* in the group of MPI_Win_start */
    bool dirty;     /* frames went whose effect was not confirmed */
    bool untold;    /* frames of FISHPLATE_DEBUG=rma went that nobody waits for */
    int fault;      /* as an origin: an operation on this rank failed there */
    int found; /* as a target: an operation of this rank failed here, which has not been reported to it */
    uint32_t posts;
    uint32_t pending; /* answers and transfers under way */
    uint64_t flushes, flushed;
    uint64_t round[2]; /* rma.rounds of the last call that waited for it, here and [1] at the target */
    struct {
        struct list link; /* win->waiting */
        struct near_entry entry;
        bool waiting;      /* it has requested the lock of this process, and the lock is not granted yet */
    } request;             /* as a target, when it is on another node and its adapter cannot add */
    struct far *far;       /* far.c: NULL until its lock was taken by RDMA */
    struct batch *batch;   /* copy_batch.c: NULL until something was collected */
    struct box *box;       /* box.c: of a rank on this node; NULL: it has none */
    struct doorbell *bell; /* ... and whether it sleeps */
    uint8_t box_pause;     /* operations before the next request to it ... */
    uint8_t box_refusals;  /* ... as it did not help the last time */
    struct counts *counts; /* counts.c: NULL until one of the two posted to the other */
    struct wide *wide;     /* wide.c: NULL until the adapter changed a word */
};

/* The state of one-sided communication of a process. */
struct rma {
    struct proc *proc;
    struct win *wins[64 * 64]; /* by context id */
    int nwins;
    struct directory directory;
    struct counts_chunk *counts; /* memory for counters (counts.c) ... */
    struct transport *counts_adapter;
    uint64_t serial;          /* of the last window */
    uint64_t rounds;          /* calls that waited for all targets of a window */
    uint32_t idle;            /* flushes and unlocks that had nothing to wait for */
    struct net_hook box_hook; /* box.c: this process helps others */
    struct ids ids;
    int queued;
    char *scratch; /* for a frame that is being built; not used across anything that waits */
    bool debug;
};

/* An operation of the origin that waits for data from the target (get, get_accumulate, ...), or for an adapter. */
struct rma_op {
    struct request base; /* first; only set up if the user requested it */
    struct net_op transfer;
    struct net_mem mem;
    struct win_peer *to;
    struct dt_cursor cursor; /* where answers go */
    struct dtype *type;
    uint64_t cookie;
    uint64_t left; /* bytes */
    bool sending;  /* more pieces will be requested */
    bool registered;
    bool wanted; /* base is a request that the user holds */
    int error;   /* the target has died before all pieces were requested */
};

/* win.c */
struct rma *rma_open(struct proc *p);
struct win *win_of_context(struct rma *r, uint32_t context);
int win_error(const struct win *w, int errclass, const char *fmt, ...) PRINTF_LIKE(3, 4)
    __attribute__((cold));

/* window_peers.c */
int win_peer(struct win *w, int rank, struct win_peer **out); /* to be accessed: it is known */
int win_peer_find_or_create(struct win *w, int rank,
                            struct win_peer **out); /* to send frames to, or to wait for */
void win_peers_close(struct win *w);
struct win_peer *win_peer_for_sender(struct win *w,
                                     int rank); /* inside progress: ends the process when memory is out */

static inline bool win_peer_is_busy(const struct win_peer *p)
{
    return p->busy.next != &p->busy;
}

static inline void win_peer_mark_busy(struct win_peer *p)
{
    if (!win_peer_is_busy(p))
        list_append(&p->win->busy, &p->busy);
}

/* Whether the peer is reached through an adapter, whose writes ring no doorbell. */
static inline bool win_peer_uses_adapter(const struct win_peer *p)
{
    return p->win->adapter && p->peer->transport == p->win->adapter;
}

/* wire.c */
void rma_send(struct win_peer *to, enum rma_frame what, uint16_t aux, int32_t tag, uint64_t word,
              const void *payload, size_t len);
/* The same from a user's call: waits while too many frames are queued. */
void rma_send_throttled(struct win_peer *to, enum rma_frame what, uint16_t aux, int32_t tag, uint64_t word,
                        const void *payload, size_t len);
void rma_wait_few_queued(struct rma *r);     /* waits while too much is queued */
size_t rma_chunk(const struct win_peer *to); /* payload of one frame */
void rma_arrived(void *arg, struct peer *from, const struct frame_header *h, const void *payload, size_t len);

/* Copies to or from memory of a window, which may be GPU memory. Returns 0 or an error class. */
static inline int window_copy(void *to, const void *from, size_t len)
{
    if (unlikely(gpu_may_have_memory()))
        return gpu_copy(to, from, len);
    memcpy(to, from, len);
    return 0;
}

/* device_accumulate.c: accumulates with buffers in GPU memory, and changes of windows in GPU memory. */
bool rma_is_on_device(const struct rma_call *c);
int rma_run_on_copies(const struct rma_call *c, bool direct,
                      int (*run)(const struct rma_call *copies, void *arg), void *arg);
int device_apply(const struct op *op, struct dtype *basic, const void *in, void *target, void *fetched,
                 size_t n);
int device_swap(size_t size, const void *value, const void *compare, void *target, void *fetched);

/* range.c: the address in my memory of a frame's offset, or NULL if it is outside of the window. */
char *win_check_address(struct win *w, uint64_t offset, uint64_t len);
bool win_attached(const struct win *w, uint64_t address, uint64_t len);

/* runs.c: the next pieces of typed memory, up to `room` bytes; returns the bytes they cover. */
size_t runs_collect_next(struct dt_cursor *target, size_t room, int max, struct rma_run *runs, int *count);

/* frame_move.c: put and get. */
int move_start(const struct rma_call *c, struct win_peer *to);
void put_arrived(struct win *w, struct win_peer *from, const struct frame_header *h, const char *payload,
                 size_t len);
void get_arrived(struct win *w, struct win_peer *from, const struct frame_header *h, const char *payload,
                 size_t len);
void reply_arrived(struct rma *r, struct peer *from, const struct frame_header *h, const char *payload,
                   size_t len);

/* direct_transfer.c: put and get by the transport itself. False: this operation cannot use it. */
bool transfer_fits(const struct rma_call *c, const struct win_peer *to);
int transfer_start(const struct rma_call *c, struct win_peer *to);

/* copy_batch.c: the same where this processor copies the bytes; batch_run carries out the collected operations. */
int batch_move(const struct rma_call *c, struct win_peer *to, char *local, uint64_t remote, size_t len);
void batch_run(struct win_peer *p);
bool batch_has_pieces(const struct win_peer *p); /* something is collected */

/* box.c: work that a target waiting inside MPI does for an origin on its node. */
#define BOX_PIECES 16
void box_open(struct rma *r); /* this process helps from now on */
void box_close(struct rma *r);
struct box *box_from_directory(struct win_entry *directory);
bool box_reaches(const struct win_peer *p); /* it may help; what follows may be called */
/* Moves short pieces with the target's help. Returns the number of pieces that the target moved; the caller moves the
 * others. */
size_t box_move(struct win_peer *p, bool put, const struct net_piece *pieces, size_t count);
/* Moves long pieces, shared between origin and target if the target has time. All are complete on return. Returns 0 or
 * an error class. */
int box_share(struct win_peer *p, bool put, const struct net_piece *pieces, size_t count);

/* operation.c: operations under way. */
int op_new_under_way(const struct rma_call *c, const struct rma_side *into, struct win_peer *to,
                     struct rma_op **out);
void op_add_piece(struct rma_op *o);                       /* a piece is under way */
void op_record_progress(struct rma_op *o, uint64_t bytes); /* ... and has come */
void op_record_fault(struct rma_op *o, int status);        /* its transfer failed */
void op_end_sending(struct rma_op *o);
void rma_member_died(struct proc *p, uint32_t number);
void op_wait_few_pending(struct win_peer *to); /* waits while too many answers are outstanding */

/* accumulate.c */
int accumulate_start(const struct rma_call *c, struct win_peer *to);
int accumulate_direct(const struct rma_call *c, struct win_peer *to, char *at);
void acc_arrived(struct win *w, struct win_peer *from, const struct frame_header *h, const char *payload,
                 size_t len);
int swap_start(const struct rma_call *c, struct win_peer *to);
void swap_arrived(struct win *w, struct win_peer *from, const struct frame_header *h, const char *payload,
                  size_t len);

/* atomic.c: elements of a predefined type, in its layout. fetched may be NULL. MPIX_ERR_PROC_FAILED: another rank died in the middle
 * of a change of this memory. */
int win_apply(struct win *w, struct win_slot *slot, const struct op *op, struct dtype *basic, const void *in,
              void *target, void *fetched, size_t n);
int win_swap(struct win *w, struct win_slot *slot, struct dtype *basic, const void *value,
             const void *compare, void *target, void *fetched);
bool atomic_by_processor(const struct dtype *basic, uint64_t address);
bool atomic_adds(const struct op *op, const struct dtype *basic); /* the operator is an integer's sum */

/* wide.c: integers of 8 bytes by the adapter's atomics. */
bool wide_is_supported_element(const struct dtype *basic, uint64_t address);
void wide_apply(struct win *w, const struct op *op, struct dtype *basic, const char *in, uint64_t *target,
                char *fetched, size_t n);
void wide_swap(struct win *w, const void *value, const void *compare, uint64_t *target, void *fetched);
bool wide_is_applicable(const struct rma_call *c, const struct win_peer *to, uint64_t offset);
int wide_start(const struct rma_call *c, struct win_peer *to, uint64_t offset);
/* Before an accumulate by frames or (wide) by the adapter: waits for those of the other kind that it must not overtake. */
int wide_keep_order(const struct rma_call *c, struct win_peer *to, uint64_t offset, bool wide);
void wide_close(struct win_peer *p);

/* window_lock.c */
int peer_lock(struct win_peer *p, int type, bool nocheck);
void lock_arrived(struct win *w, struct win_peer *from, int type);
void unlock_arrived(struct win *w, struct win_peer *from, int type);
void lock_stop_polling(struct win *w); /* ranks that still wait for the lock learn that a member has died */

/* far.c: locks of other nodes' ranks, by RDMA. */
bool far_can_lock(const struct win_peer *p);
int far_lock_window(struct win_peer *p, int type);
int far_unlock_window(struct win_peer *p, int type);
void far_close(struct win_peer *p);

/* counts.c: posts and completes between nodes as counters, written by RDMA. */
enum count_kind { COUNT_POSTS, COUNT_COMPLETES };
bool counts_write(struct win_peer *to, enum count_kind kind); /* one more; false: a frame must tell it */
uint32_t counts_new(const struct win_peer *from, enum count_kind kind); /* written and not taken */
void counts_consume(struct win_peer *from, enum count_kind kind, uint32_t some);
/* Sends the address of the counters of this process for the peer, once. */
void counts_notify(struct win_peer *to, enum rma_frame what);
void counts_handle_address(struct win_peer *from, const void *payload, size_t len);
void counts_close(struct win_peer *p);
void counts_close_all(struct rma *r);

/* sync.c */
int peer_finish(struct win_peer *p,
                bool remotely); /* waits for what is under way; the error that came back */
int peers_finish(struct win *w, bool remotely);
int peer_complete_and_confirm(struct win_peer *p, enum rma_frame how,
                              int type); /* sends RMA_FLUSH or RMA_UNLOCK and waits */
int win_barrier(struct win *w);
void win_count_empty_flush(struct win *w); /* a call that had nothing to wait for */
/* A request to the adapter through which a rank is reached. */
enum adapter_request_kind { ADAPTER_PUT, ADAPTER_GET, ADAPTER_ATOMIC };
struct adapter_request {
    enum adapter_request_kind kind;
    void *local;               /* ADAPTER_ATOMIC: gets the value before the change */
    const struct net_mem *mem; /* registration of `local` */
    uint64_t remote;
    const struct net_key *key; /* of the memory at `remote` */
    size_t len;                /* not for ADAPTER_ATOMIC */
    struct net_atomic change;  /* ADAPTER_ATOMIC */
    struct net_op *op;         /* NULL: the completion is not reported */
};
/* Posts the request; waits until the send queue has room and the connection is open. */
int adapter_post(const struct win_peer *p, const struct adapter_request *r);
/* Waits, making progress, until ready(arg). `unrung`: other processes change the memory that ready() reads without
 * ringing a doorbell. */
void rma_wait(struct rma *r, bool (*ready)(void *), void *arg, bool unrung, const char *name);
/* The same for a word that `to` changes, or any member of the window if `to` is NULL. Returns an error if they have
 * died. */
int rma_wait_for(struct rma *r, const struct win *w, const struct win_peer *to, bool (*ready)(void *),
                 void *arg, bool unrung, const struct net_named *what);
int win_report_lost(const struct win *w, const struct win_peer *to) __attribute__((cold)); /* that error */

/* dispatch.c */
int check_rank(const struct win *w, int rank);

/* conflict_watch.c: FISHPLATE_DEBUG=rma */
bool watch_wanted(void);
void watch_record_call(const struct rma_call *c, uint64_t offset);
void watch_arrived(struct win *w, const char *payload, size_t len);
void watch_close(struct win *w);
void watch_forget_rank(struct win *w, int rank);   /* an epoch ends at this rank, or (-1) at all */
void watch_complete_gets(struct win *w, int rank); /* ... its gets are complete */
void watch_open(struct win *w);         /* the program's stores into the window are seen from now on ... */
void watch_begin(struct win *w);        /* ... belong to a new epoch ... */
void watch_fence(struct win *w);        /* ... and are compared when all operations have been reported */
void watch_end_exposure(struct win *w); /* the same after MPI_Win_post */
void watch_mark_unconfirmed(struct win *w);

#endif
