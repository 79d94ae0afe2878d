/* algorithm.h: a collective algorithm is a pure function from a shape (rank, size, count, root) to a
 * schedule. Each file in algo/ contains one family of algorithms and registers it at link time.
 *
 * What an item is, and what the buffers hold, by kind: barrier no data bcast a byte of packed data; BUF_RECV
 * holds `count` of them at every rank (the root's is only read) gather, scatter the block of one rank; the
 * root's side has `size` blocks, a leaf's one allgather, alltoall the block of one rank; SEND has 1 or size,
 * RECV has size reduce, allreduce, scan, exscan an element; `count` of them in SEND and RECV reduce_scatter
 * an element; SEND has starts[size] of them, RECV those of this rank's block neighbor_* the block of one
 * neighbour In place, the input is in BUF_RECV, where the standard places it, and BUF_SEND is not used. (A
 * scatter's root in place has no BUF_RECV.)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SCHED_ALGORITHM_H
#define FP_COLL_SCHED_ALGORITHM_H

#include "coll/sched/sched.h"

enum coll_kind {
    COLL_BARRIER,
    COLL_BCAST,
    COLL_GATHER,
    COLL_SCATTER,
    COLL_ALLGATHER,
    COLL_ALLTOALL,
    COLL_REDUCE,
    COLL_ALLREDUCE,
    COLL_REDUCE_SCATTER,
    COLL_SCAN,
    COLL_EXSCAN,
    COLL_NEIGHBOR_ALLGATHER,
    COLL_NEIGHBOR_ALLTOALL,
    COLL_KINDS
};

const char *coll_kind_name(enum coll_kind kind);
enum coll_form { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT, COLL_FORMS };
/* Returns the name of the MPI function, "MPI_Ibcast". */
const char *coll_call_name(enum coll_kind kind, enum coll_form form);

/* Values of coll_shape.root on an intercommunicator: in the root's group ROOT_SELF (MPI_ROOT) or ROOT_NONE
 * (MPI_PROC_NULL); in the other group the rank of the root. */
#define ROOT_SELF (-1)
#define ROOT_NONE (-2)

/* A parameter of an algorithm, such as the fan-out of a tree. */
#define COLL_PARAMETERS 8
struct coll_parameter {
    const char *name; /* NULL: unused entry */
    int min, max, preset;
};

struct coll_shape {
    enum coll_kind kind;
    int rank, size, root;
    int remote_size;       /* ranks of the remote group; 0 on an intracommunicator */
    int64_t count;         /* number of items (defined in the file head); 1 if an item is a block */
    const int64_t *starts; /* reduce_scatter: first item of each rank's block, then the end */
    bool in_place;
    bool commutative;
    bool adjacent;   /* the blocks of consecutive ranks are contiguous: a step may name a range of blocks */
    int64_t segment; /* items that a pipelined algorithm moves at a time; 0: all at once */
    int window;      /* messages in flight of an algorithm that sends to all ranks; 0: all */
    int parameter[COLL_PARAMETERS]; /* values of coll_algorithm.parameter */
    /* Neighbourhoods: ranks, -1 for none. receive_order: order in which messages between two ranks match. */
    const int *sources, *destinations, *receive_order;
    int nsources, ndestinations;
};

enum algorithm_needs {
    NEED_COMMUTATIVE = 1, /* does not preserve the operand order */
    NEED_ADJACENT = 2,    /* steps name ranges of several blocks, so no v and w variants */
    NEED_POW2 = 4,        /* size is a power of two */
    NEED_EVEN = 8,        /* size is even */
    NEED_NODE = 16,       /* all ranks on one node; run by the shared-memory executor, not by a schedule */
    NEED_INTER = 32,      /* an intercommunicator; without this flag, an intracommunicator */
    NEED_TWO = 64,        /* at least two ranks */
    NEED_NODES = 128,     /* several nodes, and the node of each rank is known; run by its own executor */
};

struct coll_algorithm {
    const char *name;
    enum coll_kind kind;
    unsigned needs;
    bool splits;  /* bcast: steps name parts of the data, so the data must be packed */
    bool segment; /* honours shape->segment */
    bool window;  /* honours shape->window */
    struct coll_parameter parameter[COLL_PARAMETERS];
    const char *doc;
    void (*generate)(const struct coll_shape *shape, struct sched *s); /* NULL: run by its own executor */
};

#define COLL_ALGORITHM(var, ...)                            \
    static const struct coll_algorithm var = {__VA_ARGS__}; \
    static const struct coll_algorithm *const var##_entry   \
        __attribute__((section("fp_coll_algorithms"), used)) = &var

/* Access to the table of algorithms. */
size_t algorithms_count(void);
const struct coll_algorithm *algorithms_get(size_t index);
const struct coll_algorithm *algorithm_find(enum coll_kind kind, const char *name);

/* True if the algorithm supports this call. Node placement is not part of the shape: the caller checks
 * NEED_NODE and NEED_NODES. */
bool algorithm_fits(const struct coll_algorithm *a, const struct coll_shape *shape);

#endif
