/* tree.c: trees, and broadcast, reduction and signals along them, in segments so that long vectors are
 * pipelined.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

/* Nodes are numbered from the root: me = (rank - root) mod size. The parent is `me` without its lowest one
 * bit. Child me + 2^k exists for each k below that bit; its subtree holds the numbers me + 2^k .. me +
 * 2^(k+1) - 1. */
struct tree tree_binomial(int rank, int size, int root)
{
    struct tree t = {.parent = -1};
    int64_t me = ring(rank - root, size);
    for (int64_t bit = 1; bit < size; bit *= 2) {
        if (me & bit) {
            t.parent = ring((int)(me - bit) + root, size);
            break;
        }
        if (me + bit < size)
            t.child[t.nchildren++] = ring((int)(me + bit) + root, size);
    }
    return t;
}

struct tree tree_chain(int rank, int size, int root)
{
    struct tree t = {.parent = rank == root ? -1 : ring(rank - 1, size)};
    if (ring(rank + 1, size) != root)
        t.child[t.nchildren++] = ring(rank + 1, size);
    return t;
}

static int64_t segment_length(int64_t count, int64_t segment)
{
    return segment > 0 && segment < count ? segment : count;
}

/* Posts the receive of the next segment before the current one is forwarded, so that each link stays busy. */
void tree_bcast(struct sched *s, const struct tree *t, struct loc data, int64_t count, int64_t segment)
{
    const int64_t step = segment_length(count, segment);
    if (t->parent >= 0)
        sched_recv(s, t->parent, data, step);
    for (int64_t at = 0; at < count; at += step) {
        int64_t len = at + step < count ? step : count - at;
        int64_t next = at + step;
        sched_fence(s);
        if (t->parent >= 0 && next < count)
            sched_recv(s, t->parent, loc_add(data, next), next + step < count ? step : count - next);
        for (int c = t->nchildren - 1; c >= 0; c--) /* the deepest subtree first */
            sched_send(s, t->child[c], loc_add(data, at), len);
    }
    sched_fence(s);
}

/* Combines the children's results from right to left, so that each reduction but the last is `in op
 * inout`. The last one may have to write its result to `in`. */
static void reduce_children(struct sched *s, const struct tree *t, bool commutative, struct loc in,
                            struct loc children, int64_t stride, struct loc out, int64_t len)
{
    struct loc right = loc_add(children, (t->nchildren - 1) * stride);
    for (int c = t->nchildren - 2; c >= 0; c--)
        sched_reduce(s, loc_add(children, c * stride), right, right, len);
    if (!loc_same(in, out)) {
        sched_reduce(s, in, right, out, len);
    } else if (commutative) {
        sched_reduce(s, right, in, out, len);
    } else {
        sched_reduce(s, in, right, right, len);
        sched_copy(s, right, out, len);
    }
}

static void recv_children(struct sched *s, const struct tree *t, struct loc children, int64_t stride,
                          int64_t len)
{
    for (int c = 0; c < t->nchildren; c++)
        sched_recv(s, t->child[c], loc_add(children, c * stride), len);
}

/* Reduces up the tree with two sets of receive buffers and two of results: segment k+1 is received while k
 * is reduced and k-1 is sent. */
void tree_reduce(struct sched *s, const struct tree *t, bool commutative, struct loc in, struct loc out,
                 int64_t count, int64_t segment)
{
    const int64_t step = segment_length(count, segment);
    if (t->nchildren == 0) {
        for (int64_t at = 0; at < count; at += step) {
            int64_t len = at + step < count ? step : count - at;
            if (t->parent >= 0)
                sched_send(s, t->parent, loc_add(in, at), len);
            else
                sched_copy(s, loc_add(in, at), loc_add(out, at), len);
        }
        sched_fence(s);
        return;
    }
    const int sets = step < count ? 2 : 1;
    struct loc children = sched_temp(s, sets * t->nchildren * step);
    struct loc results = t->parent >= 0 ? sched_temp(s, sets * step) : out;
    recv_children(s, t, children, step, step);
    int set = 0;
    for (int64_t at = 0; at < count; at += step) {
        int64_t len = at + step < count ? step : count - at;
        int64_t next = at + step;
        int other = sets - 1 - set;
        sched_fence(s);
        if (next < count)
            recv_children(s, t, loc_add(children, other * t->nchildren * step), step,
                          next + step < count ? step : count - next);
        struct loc result = t->parent >= 0 ? loc_add(results, set * step) : loc_add(out, at);
        reduce_children(s, t, commutative, loc_add(in, at), loc_add(children, set * t->nchildren * step),
                        step, result, len);
        if (t->parent >= 0)
            sched_send(s, t->parent, result, len);
        set = other;
    }
    sched_fence(s);
}

struct loc group_reduce(const struct coll_shape *shape, struct sched *s, const struct tree *t)
{
    struct loc in = loc_make(BUF_SEND, 0), result = in;
    if (shape->size == 1)
        return in;
    if (t->parent < 0)
        result = sched_temp(s, shape->count);
    tree_reduce(s, t, shape->commutative, in, result, shape->count, 0);
    return result;
}

void tree_signal_up(struct sched *s, const struct tree *t)
{
    for (int c = 0; c < t->nchildren; c++)
        sched_await(s, t->child[c]);
    sched_fence(s);
    if (t->parent >= 0)
        sched_signal(s, t->parent);
}

void tree_signal_down(struct sched *s, const struct tree *t)
{
    if (t->parent >= 0)
        sched_await(s, t->parent);
    sched_fence(s);
    for (int c = t->nchildren - 1; c >= 0; c--)
        sched_signal(s, t->child[c]);
    sched_fence(s);
}
