/* phases.h: the building blocks that several algorithms share: trees, a partial result that preserves the
 * operand order, the fold to a power of two, and the partition of a vector. All functions are pure: they only
 * add steps to a schedule.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_ALGO_PARTS_PHASES_H
#define FP_COLL_ALGO_PARTS_PHASES_H

#include "coll/sched/algorithm.h"

/* Limit of the partners of a rank in one round of a barrier. */
#define BARRIER_PARTNERS_MAX 64

/* The edges of one node in a tree. Children are in the order of the ranks in their subtrees: the subtree
 * of child i holds the ranks that follow those of child i-1, and child 0 follows this node. */
#define TREE_CHILDREN_MAX 31
struct tree {
    int parent; /* -1 at the root */
    int nchildren;
    int child[TREE_CHILDREN_MAX];
};

struct tree tree_binomial(int rank, int size, int root);
struct tree tree_chain(int rank, int size, int root);

/* Broadcasts down the tree: every node receives `count` items at `data`. segment 0: in one message. */
void tree_bcast(struct sched *s, const struct tree *t, struct loc data, int64_t count, int64_t segment);

/* Reduces up the tree in rank order from the root. The root has the result at `out`. `in` may be `out`. */
void tree_reduce(struct sched *s, const struct tree *t, bool commutative, struct loc in, struct loc out,
                 int64_t count, int64_t segment);

/* Reduces the data of one group of an intercommunicator up a tree. Returns the result at the root. */
struct loc group_reduce(const struct coll_shape *shape, struct sched *s, const struct tree *t);

void tree_signal_up(struct sched *s, const struct tree *t);
void tree_signal_down(struct sched *s, const struct tree *t);

/* A partial result that alternates between two buffers, because `mine op theirs` overwrites `theirs` if
 * the operand order matters. partial_copy_to_result() moves it to buf[0]. */
struct partial {
    struct loc in;     /* contribution of this rank, read-only */
    struct loc buf[2]; /* both of full length; buf[0] may be `in` */
    int at;            /* index of the buffer with the partial result; -1: it is still `in` */
    bool commutative;
};

struct partial partial_start(const struct coll_shape *shape, struct loc in, struct loc buf0, struct loc buf1);
struct loc partial_own_data(const struct partial *p);  /* the location to send from */
struct loc partial_peer_data(const struct partial *p); /* the location to receive into */
/* Combines the received items [first, first + count) with the partial result. */
void partial_merge(struct sched *s, struct partial *p, bool mine_first, int64_t first, int64_t count);
/* Copies the range to buf[0] if the partial result is in the other buffer. */
void partial_copy_to_result(struct sched *s, const struct partial *p, int64_t first, int64_t count);

/* Fold to a power of two: each even rank below 2 * rem represents itself and its right neighbour.
 * Represented ranges stay contiguous, so the operand order is preserved. */
struct fold {
    int pof2, rem;
    int index; /* number of this rank among the pof2 active ranks; -1: the left neighbour represents it */
};
struct fold fold_init(int rank, int size);
static inline int fold_rank(const struct fold *f, int index)
{
    return index < f->rem ? 2 * index : index + f->rem;
}
/* First step: an even rank below 2 * rem combines its right neighbour's vector with its own. The odd rank
 * is idle until fold_generate_return(). */
void fold_generate_reduce(struct sched *s, const struct fold *f, int rank, struct partial *p, int64_t count);

/* An allreduce by fold, an exchange among the active ranks, and return to the represented ranks.
 * `exchange` finds its partial result in `p`, and stores the whole result at `out`. */
typedef void fold_exchange(struct sched *s, const struct fold *f, struct partial *p, struct loc out,
                           int64_t count);
void fold_allreduce(const struct coll_shape *shape, struct sched *s, fold_exchange *exchange);

/* Recursive halving of the vector, nearest partner first, which preserves the operand order. Before step k
 * this rank is responsible for items [lo[k], hi[k]); at the end for [lo[steps], hi[steps]). */
struct halving {
    int steps;
    int64_t lo[32], hi[32];
};
void halving_reduce(struct sched *s, const struct fold *f, struct partial *p, int64_t count,
                    struct halving *h);

/* First item of part i if a vector of `count` items is divided into n parts. */
static inline int64_t part_start(int64_t count, int n, int i)
{
    int64_t base = count / n, extra = count % n;
    return base * i + (i < extra ? i : extra);
}
static inline int64_t part_size(int64_t count, int n, int i)
{
    return part_start(count, n, i + 1) - part_start(count, n, i);
}

/* Skips idle rounds: on a ring with more ranks than items, most parts are empty. If parts `give` and
 * `take` (= give - 1) are both empty, returns the number of further rounds that are empty too, else -1.
 * Without it, a few bytes on 10,000 ranks would cost each rank 20,000 empty rounds. */
static inline int ring_count_idle_rounds(int give, int take, int64_t count)
{
    return give >= count && take >= count ? (int)(take - count) : -1;
}

static inline int ring(int rank, int size)
{
    return ((rank % size) + size) % size;
}

/* Adds a receive or a send: gather and scatter use the same steps in opposite directions. */
static inline void sched_move(struct sched *s, bool receive, int peer, struct loc at, int64_t count)
{
    if (receive)
        sched_recv(s, peer, at, count);
    else
        sched_send(s, peer, at, count);
}

/* Copies the root's own block from its buffer to the buffer of all blocks (gather) or back (scatter). */
static inline void copy_root_block(const struct coll_shape *shape, struct sched *s, bool gather)
{
    sched_copy(s, loc_make(BUF_SEND, gather ? 0 : shape->root), loc_make(BUF_RECV, gather ? shape->root : 0),
               1);
}

/* The location of this rank's contribution to a reduction. */
static inline struct loc shape_input(const struct coll_shape *shape)
{
    return loc_make(shape->in_place ? BUF_RECV : BUF_SEND, 0);
}

/* If the group has one rank, adds the copy from input to result and returns true. */
static inline bool copy_if_single_rank(const struct coll_shape *shape, struct sched *s, struct loc in,
                                       struct loc out, int64_t count)
{
    if (shape->size == 1)
        sched_copy(s, in, out, count);
    return shape->size == 1;
}

/* Locations of a reduce_scatter: input, output, own block in the input; `mine`: items of the own block. */
struct blocks {
    struct loc in, out, own;
    int64_t mine;
};
static inline struct blocks shape_blocks(const struct coll_shape *shape)
{
    const int64_t first = shape->starts[shape->rank];
    const struct loc in = shape_input(shape);
    return (struct blocks){in, loc_make(BUF_RECV, 0), loc_add(in, first),
                           shape->starts[shape->rank + 1] - first};
}

/* Allgather round a ring: the vector is divided into `size` parts. This rank starts with part `first` in
 * place and ends with all parts. */
void ring_allgather(struct sched *s, int rank, int size, int first, struct loc data, int64_t count);

#endif
