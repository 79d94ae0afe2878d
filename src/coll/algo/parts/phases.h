/* phases.h: the building blocks that several algorithms share: trees, a running partial result that keeps the
 * order of operands, the fold to a power of two, and the partition of a vector. Pure, like everything in this
 * folder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_ALGO_PARTS_PHASES_H
#define FP_COLL_ALGO_PARTS_PHASES_H

#include "coll/sched/algorithm.h"

/* Upper limit of the partners of a rank in one round of a barrier. With more partners than ranks a barrier
 * has one round. */
#define BARRIER_PARTNERS_MAX 64

/* A tree as one of its nodes sees it. Children are in the order of the ranks they stand for: child i and its
 * subtree hold the ranks right behind those of child i-1, and all of them come right behind this node. */
#define TREE_CHILDREN_MAX 31
struct tree {
    int parent; /* -1 at the root */
    int nchildren;
    int child[TREE_CHILDREN_MAX];
};

struct tree tree_binomial(int rank, int size, int root);
struct tree tree_chain(int rank, int size, int root);

/* Broadcasts down the tree: every node ends with `count` items at `data`. segment 0: in one piece. */
void tree_bcast(struct sched *s, const struct tree *t, struct loc data, int64_t count, int64_t segment);

/* Reduces up the tree, in rank order (seen from the root): the root ends with the result at `out`. `in` may
 * be `out`. */
void tree_reduce(struct sched *s, const struct tree *t, bool commutative, struct loc in, struct loc out,
                 int64_t count, int64_t segment);

/* Reduces the contributions of one group of an intercommunicator up its tree. Returns the result at the
 * tree's root. */
struct loc group_reduce(const struct coll_shape *shape, struct sched *s, const struct tree *t);

void tree_signal_up(struct sched *s, const struct tree *t);
void tree_signal_down(struct sched *s, const struct tree *t);

/* A partial result that moves between two buffers, because `mine op theirs` is written over `theirs` when the
 * order of operands counts. Ends in buf[0] whenever it can. */
struct partial {
    struct loc in;     /* my contribution, only read */
    struct loc buf[2]; /* both of full length; buf[0] may be `in` */
    int at;            /* which buf holds the partial result; -1: none, it is still `in` */
    bool commutative;
};

struct partial partial_start(const struct coll_shape *shape, struct loc in, struct loc buf0, struct loc buf1);
struct loc partial_own_data(const struct partial *p);  /* the location to send from */
struct loc partial_peer_data(const struct partial *p); /* the location to receive into */
/* Combines items [first, first + count) received with those in place. */
void partial_merge(struct sched *s, struct partial *p, bool mine_first, int64_t first, int64_t count);
/* Moves the range to buf[0] if it is in the other buffer. */
void partial_copy_to_result(struct sched *s, const struct partial *p, int64_t first, int64_t count);

/* Fold to a power of two: of the first 2 * rem ranks each even one speaks for itself and its right neighbour,
 * so ranges of ranks stay ranges and the order of operands is kept. */
struct fold {
    int pof2, rem;
    int index; /* mine among the pof2, -1 when my left neighbour speaks for me */
};
struct fold fold_init(int rank, int size);
static inline int fold_rank(const struct fold *f, int index)
{
    return index < f->rem ? 2 * index : index + f->rem;
}
/* The even rank combines its neighbour's vector with its own; the odd one is idle until
 * fold_generate_return. */
void fold_generate_reduce(struct sched *s, const struct fold *f, int rank, struct partial *p, int64_t count);
/* The even rank sends the result at `data` to its neighbour. */
void fold_generate_return(struct sched *s, const struct fold *f, int rank, struct loc data, int64_t count);

/* An allreduce by an exchange among a power of two of ranks: folds in, lets those that speak exchange, folds
 * out. `exchange` finds its partial result in `p`, and leaves the whole result at `out`. */
typedef void fold_exchange(struct sched *s, const struct fold *f, struct partial *p, struct loc out,
                           int64_t count);
void fold_allreduce(const struct coll_shape *shape, struct sched *s, fold_exchange *exchange);

/* Recursive halving of the vector with the nearest partner first, which keeps the order of operands. range[k]
 * is what is mine before step k; after all of them it is range[steps]. */
struct halving {
    int steps;
    int64_t lo[32], hi[32];
};
void halving_reduce(struct sched *s, const struct fold *f, struct partial *p, int64_t count,
                    struct halving *h);

/* The start of part i of n in a vector of count items. */
static inline int64_t part_start(int64_t count, int n, int i)
{
    int64_t base = count / n, extra = count % n;
    return base * i + (i < extra ? i : extra);
}
static inline int64_t part_size(int64_t count, int n, int i)
{
    return part_start(count, n, i + 1) - part_start(count, n, i);
}

/* The number of rounds to skip. In a vector shorter than a ring of ranks most parts are empty. If in a round
 * both part `give` and the part before it are empty, returns how many following rounds are equal; -1 if one
 * is not empty. Otherwise a few bytes on 10,000 ranks would cost each of them 20,000 empty rounds. */
static inline int ring_return_when_idle(int give, int take, int64_t count)
{
    return give >= count && take >= count ? (int)(take - count) : -1;
}

static inline int ring(int rank, int size)
{
    return ((rank % size) + size) % size;
}

/* Adds a receive, or the send that mirrors it: gather and scatter are the reverse of each other. */
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

/* For a rank that is alone: its result is its own input. Returns true after adding that copy. */
static inline bool copy_if_single_rank(const struct coll_shape *shape, struct sched *s, struct loc in,
                                       struct loc out, int64_t count)
{
    if (shape->size == 1)
        sched_copy(s, in, out, count);
    return shape->size == 1;
}

/* What a rank of a reduce_scatter works with: its input and output, its own block of the input, and the items
 * of it. */
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

/* Passes the parts of a vector round a ring: rank `rank` starts with part `first` at data + its offset, and
 * ends with all of them. start[] has size + 1 entries. */
void ring_allgather(struct sched *s, int rank, int size, int first, struct loc data, int64_t count);

#endif
