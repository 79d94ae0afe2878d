/* rma.h: what the files of src/rma share: the peers of a window, the frames they exchange, and operations
 * that wait for an answer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_RMA_RMA_H
#define FP_RMA_RMA_H

#include <string.h>

#include "gpu/gpu.h"
#include "p2p/ids.h"
#include "rma/directory.h"
#include "rma/win.h"

/* Frame types, in frame_header.flags. `context` identifies the window, `source` the sender's rank in it. */
enum rma_frame {
    RMA_PUT,     /* payload: word bytes of data, tag runs */
    RMA_GET,     /* payload: struct rma_result_request, tag runs */
    RMA_ACC,     /* aux: element; tag: spans | operator << 24; word: bytes of data; payload: data, spans */
    RMA_GET_ACC, /* RMA_ACC with a struct rma_result_request before the data */
    RMA_SWAP,    /* aux: element; payload: struct rma_result_request, struct rma_swap */
    RMA_REPLY,   /* word: cookie; payload: position, data */
    RMA_FLUSH,   /* word: number; answered when all earlier frames of the sender are processed */
    RMA_FLUSHED, /* word: number of the RMA_FLUSH; aux: error class of an operation before it */
    RMA_LOCK,    /* aux: lock type */
    RMA_LOCKED,
    RMA_UNLOCK, /* aux: lock type; word: number; answered as RMA_FLUSH is */
    RMA_POST,   /* payload: none, or the address of the sender's counters (counts.c) */
    RMA_COMPLETE,
    RMA_COUNTS,      /* answer to RMA_POST; payload: the address of the sender's counters */
    RMA_ENTRY_QUERY, /* request for the receiver's part of the window */
    /* payload: struct win_target. aux 1: answer to RMA_ENTRY_QUERY; 0: unrequested, word: the window's serial
     * number */
    RMA_ENTRY,
    /* FISHPLATE_DEBUG=rma: an operation of the sender on the receiver's memory; payload: struct watched */
    RMA_WATCH,
};

struct rma_result_request {
    uint64_t cookie;   /* identifies the origin's operation */
    uint64_t position; /* offset of this piece in the operation's packed data */
};
/* Pieces of the target's memory: `count` pieces of `length` bytes, `stride` bytes from one to the next. */
struct rma_run {
    uint64_t offset, length, stride, count;
};
/* `count` elements of the target's memory, one extent apart. */
struct rma_span {
    uint64_t offset, count;
};
struct rma_swap {
    uint64_t offset;
    char value[16], compare[16];
};
#define RMA_RUNS_MAX  64
#define RMA_CHUNK_MAX 32768u /* largest payload of a frame, in bytes */
#define RMA_UNDER_WAY 64     /* answers that may be outstanding from one target */
#define RMA_QUEUED    128    /* frames that may be queued; with more, a user's call waits */

/* A rank of this node that is entering a gate. */
struct near_entry {
    struct win_slot *slot;
    struct gate_entry entry;
    uint64_t old;            /* value before the last addition (gate_next_step) */
    uint32_t rank;           /* job rank of the origin that enters */
    struct net_named awaits; /* description of the wait for `fishplate why` */
};

/* State for another rank of a window, from its first access on. */
struct win_peer {
    struct list busy; /* link in win->busy */
    struct win *win;
    struct peer *peer;
    int rank;
    bool known;         /* the members from `at` to `here` are valid (peer_look_up_window) */
    uint64_t announced; /* serial number of the window for which RMA_ENTRY has filled in `at` */
    struct win_target at;
    char *direct;          /* the rank's memory, mapped here; NULL: not reachable by loads and stores */
    void *mapping;         /* mapping to be unmapped, or NULL */
    void *import;          /* mapping of GPU memory, for gpu_release_import; or NULL */
    struct win_slot *slot; /* the rank's lock, reachable by processor atomics; or NULL */
    bool here; /* loads and stores reach the memory, at `direct`, or at absolute addresses if that is NULL */
    int lock;  /* lock that this process holds: 0, MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE */
    bool lock_nocheck;
    bool acquiring;              /* a thread is about to take the rank's lock */
    bool granted;                /* RMA_LOCK was answered */
    bool started;                /* in the group of MPI_Win_start */
    bool dirty;                  /* frames were sent that no RMA_FLUSHED has confirmed */
    bool has_unconfirmed_report; /* frames of FISHPLATE_DEBUG=rma were sent that no call waits for */
    int fault;                   /* error class of an operation of this process on the rank */
    int found; /* error class of an operation of the rank on this process's memory, not reported to it yet */
    uint32_t posts;            /* RMA_POST frames received and not consumed by MPI_Win_start */
    uint32_t pending;          /* answers and transfers that have not completed */
    uint64_t flushes, flushed; /* numbers of the last RMA_FLUSH sent and of the last one answered */
    /* value of rma.rounds at the last call that waited for local completion; [1]: for remote completion */
    uint64_t round[2];
    struct {
        struct list link; /* link in win->waiting */
        struct near_entry entry;
        bool waiting;         /* the rank has requested the lock of this process, which is not granted yet */
    } request;                /* lock request (RMA_LOCK) of a rank on a node whose adapter has no atomics */
    struct far *far;          /* far.c: NULL until the rank's lock was taken by RDMA */
    struct batch *batch;      /* copy_batch.c: NULL until an operation was collected */
    struct mailbox *mailbox;  /* mailbox.c: mailbox of a rank on this node; NULL: none */
    struct doorbell *bell;    /* doorbell of a rank on this node that has a mailbox */
    uint8_t mailbox_pause;    /* operations until the next request to the mailbox */
    uint8_t mailbox_refusals; /* value of mailbox_pause after the last request that was not taken */
    struct counts *counts;    /* counts.c: NULL until one of both ranks posted to the other */
    /* NULL until the rank's adapter changed a word for this process */
    struct adapter_atomics *adapter_atomics;
};

struct rma {
    struct proc *proc;
    struct win *wins[64 * 64]; /* by context id */
    struct directory directory;
    struct counts_chunk *counts;      /* memory for counters (counts.c) */
    struct transport *counts_adapter; /* adapter that `counts` is registered with */
    uint64_t serial;                  /* serial number of the last window */
    uint64_t rounds;                  /* calls that waited for all targets of a window */
    uint32_t idle;                    /* flushes and unlocks that had no operation to wait for */
    struct net_hook mailbox_hook;     /* mailbox.c: serves requests in this process's mailbox */
    struct ids ids;                   /* struct rma_op by cookie */
    int queued;                       /* frames that wait for room */
    char *scratch; /* for a frame that is being built; not valid across a call that waits */
    bool debug;
};

/* An operation of the origin that waits for data from the target (get, get_accumulate, ...), or for an
 * adapter. */
struct rma_op {
    struct request base; /* must be the first member; marked as freed if the user holds no request */
    struct net_op transfer;
    struct net_mem mem;
    struct win_peer *to;
    struct dt_cursor cursor; /* destination of the data in answers */
    struct dtype *type;
    uint64_t cookie;
    uint64_t left;   /* bytes that have not arrived */
    bool sending;    /* more pieces will be requested */
    bool registered; /* `mem` is to be released */
    bool wanted;     /* `base` is a request that the user holds */
    int error;       /* error class of the operation */
};

/* Defined in win.c: */
struct rma *rma_open(struct proc *p);
struct win *win_of_context(struct rma *r, uint32_t context);
int win_error(const struct win *w, int errclass, const char *fmt, ...) PRINTF_LIKE(3, 4)
    __attribute__((cold));

/* Defined in window_peers.c: */
/* Finds or creates the peer, and looks up the rank's window, so that `known` is true. */
int win_peer(struct win *w, int rank, struct win_peer **out);
/* For sending frames and for waiting: `known` may stay false. */
int win_peer_find_or_create(struct win *w, int rank, struct win_peer **out);
void win_peers_close(struct win *w);
/* For use inside progress: aborts if memory is out. */
struct win_peer *win_peer_for_sender(struct win *w, int rank);

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

/* Defined in wire.c: */
void rma_send(struct win_peer *to, enum rma_frame what, uint16_t aux, int32_t tag, uint64_t word,
              const void *payload, size_t len);
/* Sends a frame from a user's call: waits while too many frames are queued. */
void rma_send_throttled(struct win_peer *to, enum rma_frame what, uint16_t aux, int32_t tag, uint64_t word,
                        const void *payload, size_t len);
void rma_wait_few_queued(struct rma *r);     /* waits while RMA_QUEUED frames are queued */
size_t rma_chunk(const struct win_peer *to); /* bytes of payload of one frame */
void rma_handle_frame(void *arg, struct peer *from, const struct frame_header *h, const void *payload,
                      size_t len);

/* Copies to or from memory of a window, which may be GPU memory. Returns 0 or an error class. */
static inline int window_copy(void *to, const void *from, size_t len)
{
    if (unlikely(gpu_may_have_memory()))
        return gpu_copy(to, from, len);
    memcpy(to, from, len);
    return 0;
}

/* device_accumulate.c: accumulates with buffers in GPU memory, and windows in GPU memory. */
/* True if an accumulate has buffers in GPU memory and must run on copies of them. `at`: the target, or NULL. */
bool rma_needs_copies(const struct rma_call *c, const char *at);
int rma_run_on_copies(const struct rma_call *c, bool direct,
                      int (*run)(const struct rma_call *copies, void *arg), void *arg);
/* Change elements in GPU memory. The caller excludes other changes. `in`, `fetched`: host or GPU memory. */
int device_apply(const struct op *op, struct dtype *basic, const char *in, char *target, char *fetched,
                 size_t n);
int device_swap(size_t size, const void *value, const void *compare, void *target, void *fetched);

/* range.c: the address in this process's memory of a frame's offset, or NULL if the offset is outside of the
 * window. */
char *win_check_address(struct win *w, uint64_t offset, uint64_t len);
bool win_attached(const struct win *w, uint64_t address, uint64_t len);

/* runs.c: the next pieces of typed memory, up to `room` bytes; returns the bytes they cover. */
size_t runs_collect_next(struct dt_cursor *target, size_t room, int max, struct rma_run *runs, int *count);

/* frame_move.c: put and get. */
int frame_move_start(const struct rma_call *c, struct win_peer *to);
void put_handle_frame(struct win *w, struct win_peer *from, const struct frame_header *h, const char *payload,
                      size_t len);
void get_handle_frame(struct win *w, struct win_peer *from, const struct frame_header *h, const char *payload,
                      size_t len);
void operation_handle_reply(struct rma *r, struct peer *from, const struct frame_header *h,
                            const char *payload, size_t len);

/* direct_transfer.c: put and get by the transport itself. False: this operation cannot use it. */
bool transfer_is_possible(const struct rma_call *c, const struct win_peer *to);
int transfer_start(const struct rma_call *c, struct win_peer *to);

/* copy_batch.c: put and get by cross-memory attach. batch_move() collects short operations; batch_run()
 * executes them. */
int batch_move(const struct rma_call *c, struct win_peer *to, char *local, uint64_t remote, size_t len);
void batch_run(struct win_peer *p);
bool batch_has_pieces(const struct win_peer *p); /* operations were collected and not yet executed */

/* mailbox.c: copies that a target waiting inside MPI does for an origin on its node. */
#define MAILBOX_PIECES 16
void mailbox_open(struct rma *r); /* from now on this process executes requests in its mailbox */
void mailbox_close(struct rma *r);
struct mailbox *mailbox_from_directory(struct win_entry *directory);
/* True if the target may execute requests: mailbox_move() and mailbox_share() may be called. */
bool mailbox_is_usable(const struct win_peer *p);
/* Moves short pieces with the target's help. Returns the number of pieces that the target moved; the caller
 * moves the others. */
size_t mailbox_move(struct win_peer *p, bool put, const struct net_piece *pieces, size_t count);
/* Moves long pieces, shared between origin and target if the target has time. All are complete on return.
 * Returns 0 or an error class. */
int mailbox_share(struct win_peer *p, bool put, const struct net_piece *pieces, size_t count);

/* operation.c: operations in progress. */
int operation_create(const struct rma_call *c, const struct rma_side *into, struct win_peer *to,
                     struct rma_op **out);
void op_add_piece(struct rma_op *o);                       /* a piece was requested or posted */
void op_record_progress(struct rma_op *o, uint64_t bytes); /* a piece has arrived */
void op_record_fault(struct rma_op *o, int status);        /* a transfer failed */
void op_end_sending(struct rma_op *o);
void rma_member_died(struct proc *p, uint32_t number);
void op_wait_few_pending(struct win_peer *to); /* waits while too many answers are outstanding */

/* Defined in accumulate.c: */
int accumulate_start(const struct rma_call *c, struct win_peer *to);
/* True if the elements of all buffers are dense and of one type. */
bool accumulate_is_unpacked(const struct rma_call *c);
int accumulate_direct(const struct rma_call *c, struct win_peer *to, char *at);
void accumulate_handle_frame(struct win *w, struct win_peer *from, const struct frame_header *h,
                             const char *payload, size_t len);
int swap_start(const struct rma_call *c, struct win_peer *to);
void swap_handle_frame(struct win *w, struct win_peer *from, const struct frame_header *h,
                       const char *payload, size_t len);

/* atomic.c: changes elements of a predefined type. win_apply() and win_swap() return MPIX_ERR_PROC_FAILED if
 * another rank died while it changed this memory. `fetched` may be NULL. */
int win_apply(struct win *w, struct win_slot *slot, const struct op *op, struct dtype *basic, const void *in,
              void *target, void *fetched, size_t n);
int win_swap(struct win *w, struct win_slot *slot, struct dtype *basic, const void *value,
             const void *compare, void *target, void *fetched);
bool has_processor_atomic(const struct dtype *basic, uint64_t address);
bool is_integer_sum(const struct op *op, const struct dtype *basic); /* true for the sum of an integer type */

/* adapter_atomics.c: changes 8-byte integers by the adapter's atomics. */
bool adapter_can_change_element(const struct dtype *basic, uint64_t address);
void adapter_apply(struct win *w, const struct op *op, struct dtype *basic, const char *in, uint64_t *target,
                   char *fetched, size_t n);
void adapter_swap(struct win *w, const void *value, const void *compare, uint64_t *target, void *fetched);
bool adapter_atomics_are_possible(const struct rma_call *c, const struct win_peer *to, uint64_t offset);
int adapter_atomics_start(const struct rma_call *c, struct win_peer *to, uint64_t offset);
/* Called before an accumulate by frames or, if `by_adapter`, by the adapter: waits for accumulates of the
 * other kind that it must not overtake. */
int adapter_wait_for_conflicts(const struct rma_call *c, struct win_peer *to, uint64_t offset,
                               bool by_adapter);
void adapter_atomics_close(struct win_peer *p);

/* Defined in window_lock.c: */
int peer_lock(struct win_peer *p, int type, bool nocheck);
void lock_handle_request(struct win *w, struct win_peer *from, int type);
void lock_handle_unlock(struct win *w, struct win_peer *from, int type);
void lock_stop_polling(struct win *w); /* stops polling the lock for waiting origins */

/* far.c: locks of other nodes' ranks, by RDMA. */
bool far_can_lock(const struct win_peer *p);
int far_lock_window(struct win_peer *p, int type);
int far_unlock_window(struct win_peer *p, int type);
void far_close(struct win_peer *p);

/* counts.c: posts and completes between nodes as counters, written by RDMA. */
enum count_kind { COUNT_POSTS, COUNT_COMPLETES };
/* Adds one to the peer's counter. Returns false if a frame must be sent instead. */
bool counts_write(struct win_peer *to, enum count_kind kind);
uint32_t counts_get_unconsumed(const struct win_peer *from,
                               enum count_kind kind); /* additions that were not consumed */
void counts_consume(struct win_peer *from, enum count_kind kind, uint32_t some);
/* Sends the address of the counters of this process for the peer, once. */
void counts_notify(struct win_peer *to, enum rma_frame what);
void counts_handle_address(struct win_peer *from, const void *payload, size_t len);
void counts_close(struct win_peer *p);
void counts_close_all(struct rma *r);

/* Defined in sync.c: */
/* Waits for the operations on the rank, at the target too if `remotely`. Returns the error of an
 * operation. */
int peer_wait_operations(struct win_peer *p, bool remotely);
int peers_wait_operations(struct win *w, bool remotely);
/* Sends RMA_FLUSH or RMA_UNLOCK (`how`) and waits for the answer. */
int peer_flush_and_wait(struct win_peer *p, enum rma_frame how, int type);
int win_barrier(struct win *w);
void win_count_empty_flush(struct win *w); /* for a call that had no operation to wait for */
/* A request to the adapter through which a rank is reached. */
enum adapter_request_kind { ADAPTER_PUT, ADAPTER_GET, ADAPTER_ATOMIC };
struct adapter_request {
    enum adapter_request_kind kind;
    void *local;               /* ADAPTER_ATOMIC: gets the value before the change */
    const struct net_mem *mem; /* registration of `local` */
    uint64_t remote;
    const struct net_key *key; /* of the memory at `remote` */
    size_t len;                /* not for ADAPTER_ATOMIC */
    struct net_atomic change;  /* the operation of ADAPTER_ATOMIC */
    struct net_op *op;         /* NULL: the completion is not reported */
};
/* Posts the request; waits until the send queue has room and the connection is open. */
int adapter_post(const struct win_peer *p, const struct adapter_request *r);
/* Waits, making progress, until ready(arg). `unrung`: other processes change the memory that ready() reads
 * and ring no doorbell. */
void rma_wait(struct rma *r, bool (*ready)(void *), void *arg, bool unrung, const char *name);
/* Waits like rma_wait() for an event that `to` or, if `to` is NULL, any member of the window causes. Returns
 * an error if `to`, or a member, has died. */
int rma_wait_for(struct rma *r, const struct win *w, const struct win_peer *to, bool (*ready)(void *),
                 void *arg, bool unrung, const struct net_named *what);
/* Builds the error that rma_wait_for() returns after a death. */
int win_report_lost(const struct win *w, const struct win_peer *to) __attribute__((cold));

/* Defined in dispatch.c: */
int check_rank(const struct win *w, int rank);

/* Defined in conflict_watch.c, for FISHPLATE_DEBUG=rma: */
bool watch_is_enabled(void);
void watch_record_call(const struct rma_call *c, uint64_t offset);
void watch_handle_report(struct win *w, const char *payload, size_t len);
void watch_close(struct win *w);
void watch_forget_rank(struct win *w, int rank); /* an epoch ends at this rank, or (-1) at all ranks */
/* Called when gets from this rank, or (-1) from all ranks, are complete. */
void watch_complete_gets(struct win *w, int rank);
void watch_start_recording(struct win *w); /* begins to record the program's stores into the window */
void watch_begin_epoch(struct win *w);     /* begins an epoch: earlier stores belong to the epoch before */
void watch_switch_fence_epoch(
    struct win *w); /* compares the epoch's stores with the operations, at MPI_Win_fence */
void watch_end_exposure(struct win *w); /* compares the epoch's stores with the operations, at MPI_Win_wait */
void watch_mark_unconfirmed(struct win *w);

#endif
