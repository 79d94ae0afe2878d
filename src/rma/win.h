/* win.h: windows as the API sees them: created, used, synchronised, freed. Everything else that the files of
 * src/rma share is in rma.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_RMA_WIN_H
#define FP_RMA_WIN_H

#include <mpi.h>
#include <stdatomic.h>

#include "base/mapping.h"
#include "dt/op.h"
#include "obj/attr.h"
#include "obj/comm.h"
#include "obj/errhandler.h"
#include "obj/info.h"
#include "rma/change.h"
#include "rma/gate.h"

/* What one rank of a window lets the others on its node (and its own progress) do with atomics, and other nodes with
 * their adapters. All zero is free. */
struct win_slot {
    _Alignas(CACHE_LINE) _Atomic uint64_t gate[GATE_WORDS]; /* its lock */
    _Atomic uint32_t
        holder; /* job rank + 1 of who holds the lock exclusively, by the processor; for fishplate why */
    struct change change; /* who changes elements of the rank's memory */
};

/* What changes integers of 8 bytes in a rank's memory, the same for all origins (wide.c). */
enum win_atomics {
    ATOMICS_PROCESSOR, /* processors of its node; other nodes send frames */
    ATOMICS_ADAPTER,   /* its adapter alone, also for the rank itself */
    ATOMICS_BOTH       /* its adapter and processors of its node, which are atomic towards each other */
};

/* The description with which others access a rank's part of a window (directory.h). */
struct win_target {
    uint64_t base, size;
    int64_t unit;
    uint64_t span; /* the node's memory that holds it (net_span_map), or 0 */
    struct net_key key;
    uint64_t entry; /* where the owner keeps this, with its lock, for adapters */
    struct net_key entry_key;
    uint32_t context;   /* of the window, plus 1; 0: there is none */
    uint8_t registered; /* an adapter can reach the memory with the key */
    uint8_t atomics;    /* enum win_atomics */
    uint8_t listed;     /* an adapter can reach the entry with its key ... */
    uint8_t locks_open; /* ... and takes the lock so */
    uint8_t on_device;  /* GPU memory: only the rank itself accesses it */
};

enum win_by { BY_ANY, BY_PROCESSOR, BY_ADAPTER };
enum win_help { HELP_AUTO, HELP_ON, HELP_OFF };

enum win_epoch { EPOCH_NONE, EPOCH_FENCE, EPOCH_START, EPOCH_LOCK, EPOCH_LOCK_ALL };

struct win_region { /* of a dynamic window: attached memory */
    uint64_t base, size;
};

struct win {
    struct fallible base; /* MAGIC_WIN; first */
    struct proc *proc;
    struct comm *comm; /* private: its numbers name the window in frames */
    int flavor, model; /* MPI_WIN_FLAVOR_*; the API hands out pointers to these and the next three */
    MPI_Aint size;
    int unit_int;
    MPI_Aint unit;
    void *memory;
    uint64_t span;               /* the node's memory behind it, 0: private */
    size_t span_size;            /* as far as this process mapped it */
    int first_with_memory;       /* the lowest rank whose size is not 0; the size of comm: none */
    void *segment;               /* MPI_Win_allocate_shared: everyone's memory, mapped here */
    bool owned;                  /* memory is ours to free */
    struct mapping mapped;       /* ... or to unmap */
    bool shared;                 /* other processes load and store here by themselves */
    struct net_mem registration; /* valid when an adapter can reach the memory */
    struct transport *adapter;
    int asking;              /* answers to RMA_WHERE that have not come */
    uint64_t serial;         /* agreed among all; grows in every process */
    struct win_target *mine; /* in the directory of this process, with the slot */
    struct win_slot *my_slot;

    struct win_peer **table; /* open addressing by rank; only ranks that were touched */
    uint32_t table_size, table_used;
    struct list busy; /* peers with something to wait for before an epoch ends */

    enum win_epoch access;
    uint32_t fence_ops; /* operations since the last fence */
    int locks;          /* EPOCH_LOCK: how many are held */
    bool lock_all_nocheck;
    struct win_peer **started; /* EPOCH_START: the targets */
    int nstarted;
    bool exposed;             /* MPI_Win_post */
    int expected;             /* ... the number of origins */
    struct win_peer **posted; /* ... of which these have counters (counts.c) and have not completed */
    int nposted;
    int completes;
    struct list waiting; /* lock requests of other nodes that are not granted yet */
    struct net_hook hook;
    bool hooked;

    struct win_region *regions;
    int nregions, regions_room;

    bool no_locks;
    bool unordered;      /* accumulate_ordering=none */
    size_t locked_bytes; /* mpi_accumulate_granularity, 0: not given */
    uint8_t by;          /* the hint fishplate_accumulate_by: what it wants (enum win_by) ... */
    uint8_t atomics;     /* ... and what is in use for the memory of this process (enum win_atomics) */
    uint8_t help;        /* the hint fishplate_help (enum win_help) */
    struct info *info;
    struct attr_set *attrs;
    char name[MPI_MAX_OBJECT_NAME];
    char label[96];
    struct list watch,
        seen; /* FISHPLATE_DEBUG=rma: my operations of this epoch, and everyone's on my memory */
    uint32_t fences;
    struct stores *stores;  /* ... and what the program stores into its memory; NULL: not seen */
    uint64_t stores_before; /* how many there were when the epoch began */
};

static inline MPI_Win win_handle(struct win *w)
{
    return (MPI_Win)w;
}

/* Collective. `memory` is the user's for MPI_WIN_FLAVOR_CREATE and returned by the flavours that allocate. */
int win_make(struct comm *parent, int flavor, void *memory, MPI_Aint size, MPI_Aint unit,
             const struct info *info, struct win **out);
int win_free(struct win *w, bool *gone); /* gone: also when an error is returned */
int win_attach(struct win *w, void *base, MPI_Aint size);
int win_detach(struct win *w, const void *base);
int win_shared_query(struct win *w, int rank, MPI_Aint *size, MPI_Aint *unit, void **base);
const char *win_label(const struct win *w);

/* Apply the hints of an info object that windows know; and return a new info object with all hints in use. */
int win_hints_apply(struct win *w, const struct info *info);
int win_hints_used(const struct win *w, struct info **out);

/* Synchronisation. */
int win_fence(struct win *w, int assertion);
int win_post(struct win *w, struct group *group, int assertion);
int win_start(struct win *w, struct group *group, int assertion);
int win_complete(struct win *w);
int win_wait(struct win *w);
int win_test(struct win *w, int *flag);
int win_lock(struct win *w, int type, int rank, int assertion);
int win_unlock(struct win *w, int rank);
int win_lock_all(struct win *w, int assertion);
int win_unlock_all(struct win *w);
int win_flush(struct win *w, int rank, bool local);
int win_flush_all(struct win *w, bool local);
int win_sync(struct win *w);

/* Operations. */
enum rma_kind { RMA_IS_PUT, RMA_IS_GET, RMA_IS_ACCUMULATE, RMA_IS_GET_ACCUMULATE, RMA_IS_SWAP };

struct rma_side {
    void *buf;
    MPI_Count count;
    struct dtype *type;
};

struct rma_call {
    enum rma_kind kind;
    struct win *win;
    struct rma_side origin; /* data that goes; where a get puts it. type NULL: none (MPI_NO_OP) */
    struct rma_side result; /* get_accumulate, compare_and_swap: what was there before */
    const void *compare;
    int rank;
    MPI_Aint disp;
    MPI_Count count;
    struct dtype *type;
    const struct op *op;
    struct request **request; /* NULL: none is wanted */
};
int rma_run(const struct rma_call *c);
/* The window of a request of rma_run; NULL for a request of another kind. */
struct win *rma_request_win(const struct request *r);

/* The target address of a put or get of one block, if this process may access it by loads and stores. NULL: call
 * rma_run, which also detects errors. */
char *rma_local_address(struct win *w, int rank, MPI_Aint disp, uint64_t bytes);

#endif
