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

/* The words of a rank that other ranks change: ranks of its node (and its own progress) by processor atomics,
 * ranks of other nodes by their adapters. All zero: unlocked. */
struct win_slot {
    _Alignas(CACHE_LINE) _Atomic uint64_t gate[GATE_WORDS]; /* the lock of MPI_Win_lock */
    /* job rank + 1 of the rank of this node that holds the lock exclusively, for `fishplate why` */
    _Atomic uint32_t holder;
    struct change change; /* excludes changes of elements of the rank's memory */
};

/* The means by which all origins change integers of 8 bytes in a rank's memory (adapter_atomics.c). */
enum win_atomics {
    ATOMICS_PROCESSOR, /* processors of the rank's node; ranks of other nodes send frames */
    ATOMICS_ADAPTER,   /* the rank's adapter alone, also for the rank itself */
    ATOMICS_BOTH       /* the rank's adapter and the node's processors, atomic with respect to each other */
};

/* The description with which others access a rank's part of a window (directory.h). */
struct win_target {
    uint64_t base, size;
    int64_t unit;
    uint64_t span;            /* span of the node's shared memory that holds the part (net_span_map), or 0 */
    struct net_key key;       /* of the memory, valid if `registered` */
    uint64_t entry;           /* address of the owner's struct win_entry, for adapters */
    struct net_key entry_key; /* of the entry, valid if `listed` */
    uint32_t context;         /* context of the window, plus 1; 0: the entry is free */
    uint8_t registered;       /* adapters of other ranks can access the memory */
    uint8_t atomics;          /* enum win_atomics */
    uint8_t listed;           /* adapters of other ranks can access the entry */
    uint8_t locks_open;       /* adapters of other ranks take the lock in the entry */
    uint8_t on_device;        /* GPU memory: adapters do not access it */
};

enum win_by { BY_ANY, BY_PROCESSOR, BY_ADAPTER };
enum win_help { HELP_AUTO, HELP_ON, HELP_OFF };

enum win_epoch { EPOCH_NONE, EPOCH_FENCE, EPOCH_START, EPOCH_LOCK, EPOCH_LOCK_ALL };

struct win_region { /* of a dynamic window: attached memory */
    uint64_t base, size;
};

struct win {
    struct fallible base; /* magic number MAGIC_WIN; must be the first member */
    struct proc *proc;
    struct comm *comm; /* private duplicate of the parent; its context identifies the window in frames */
    /* MPI_WIN_FLAVOR_*, MPI_WIN_MODEL; attributes point to these and to unit_int, size and memory */
    int flavor, model;
    MPI_Aint size;
    int unit_int;
    MPI_Aint unit;
    void *memory;
    uint64_t span;               /* span of the node's shared memory that holds `memory`; 0: private memory */
    size_t span_size;            /* bytes of the span that this process has mapped */
    int first_with_memory;       /* the lowest rank whose size is not 0; comm->size: none */
    void *segment;               /* MPI_Win_allocate_shared: the memory of all ranks, mapped here */
    struct gpu_export *exports;  /* exported GPU memory by rank; size 0: not mappable. NULL: no GPU memory */
    int descriptor;              /* file descriptor of this rank's exported GPU memory, or -1 */
    bool some_on_device;         /* a rank's memory is GPU memory; the same at all ranks */
    bool owned;                  /* `memory` is to be freed with the window */
    struct mapping mapped;       /* private memory from mapping_open() */
    bool shared;                 /* other processes load and store `memory` directly */
    struct net_mem registration; /* registration of `memory` with `adapter`, if any */
    struct transport *adapter;
    int asking;      /* answers to RMA_ENTRY_QUERY that have not arrived */
    uint64_t serial; /* number of the window, the same at all ranks; higher than that of earlier windows */
    struct win_target *mine; /* description and slot of this rank, in its directory */
    struct win_slot *my_slot;

    /* hash table by rank, with open addressing: ranks that accessed this rank or that this rank accessed */
    struct win_peer **table;
    uint32_t table_size, table_used;
    struct list busy; /* peers whose operations must complete before an epoch ends */

    enum win_epoch access;
    uint32_t fence_ops; /* operations since the last fence */
    int locks;          /* EPOCH_LOCK: locks that this process holds */
    bool lock_all_nocheck;
    struct win_peer **started; /* EPOCH_START: the targets */
    int nstarted;
    bool exposed;             /* between MPI_Win_post and MPI_Win_wait */
    int expected;             /* origins of the exposure epoch */
    struct win_peer **posted; /* origins that have counters (counts.c) and have not completed */
    int nposted;
    int completes;        /* origins that have completed */
    struct list waiting;  /* lock requests of other nodes that are not granted yet */
    struct net_hook hook; /* polls the lock for `waiting` */
    bool hooked;          /* `hook` is linked */

    struct win_region *regions;
    int nregions, regions_room;

    bool no_locks;
    bool unordered;      /* accumulate_ordering=none */
    size_t locked_bytes; /* mpi_accumulate_granularity; 0: not given */
    uint8_t by;          /* enum win_by: the hint fishplate_accumulate_by */
    uint8_t atomics;     /* enum win_atomics: the means in use for the memory of this process */
    uint8_t help;        /* the hint fishplate_help (enum win_help) */
    struct info *info;
    struct attr_set *attrs;
    char name[MPI_MAX_OBJECT_NAME];
    char label[96];
    /* Members used by FISHPLATE_DEBUG=rma (conflict_watch.c): */
    struct list watch;      /* operations of this rank in the epoch */
    struct list seen;       /* operations of all ranks on this rank's memory in the epoch */
    uint32_t fences;        /* calls of MPI_Win_fence */
    struct stores *stores;  /* stores of the program into `memory`; NULL: not recorded */
    uint64_t stores_before; /* number of stores when the epoch began */
};

static inline MPI_Win win_handle(struct win *w)
{
    return (MPI_Win)w;
}

/* Creates a window. Collective. `memory` is the user's memory, used for MPI_WIN_FLAVOR_CREATE only. */
int win_make(struct comm *parent, int flavor, void *memory, MPI_Aint size, MPI_Aint unit,
             const struct info *info, struct win **out);
int win_free(struct win *w, bool *gone); /* *gone: the window was freed, possibly with an error */
int win_attach(struct win *w, void *base, MPI_Aint size);
int win_detach(struct win *w, const void *base);
int win_shared_query(struct win *w, int rank, MPI_Aint *size, MPI_Aint *unit, void **base);
const char *win_label(const struct win *w);

/* win_hints_apply() applies the hints of `info` that windows know; win_hints_used() returns a new info object
 * with all hints in use. */
int win_hints_apply(struct win *w, const struct info *info);
int win_hints_used(const struct win *w, struct info **out);

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

enum rma_kind { RMA_IS_PUT, RMA_IS_GET, RMA_IS_ACCUMULATE, RMA_IS_GET_ACCUMULATE, RMA_IS_SWAP };

struct rma_side {
    void *buf;
    MPI_Count count;
    struct dtype *type;
};

struct rma_call {
    enum rma_kind kind;
    struct win *win;
    struct rma_side origin; /* the origin's data; the destination of a get. type NULL: none (MPI_NO_OP) */
    struct rma_side result; /* get_accumulate, compare_and_swap: destination of the target's old values */
    const void *compare;
    int rank;
    MPI_Aint disp;
    MPI_Count count;
    struct dtype *type;
    const struct op *op;
    struct request **request; /* NULL: the call returns no request */
};
int rma_run(const struct rma_call *c);
/* Returns the window of a request that rma_run() created; NULL for other requests. */
struct win *rma_request_win(const struct request *r);

/* The target address of a put or get of one block, if this process may access it by loads and stores. NULL:
 * call rma_run, which also detects errors. */
char *rma_local_address(struct win *w, int rank, MPI_Aint disp, uint64_t bytes);

#endif
