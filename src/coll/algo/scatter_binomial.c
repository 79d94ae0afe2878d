/* scatter_binomial.c: the reverse of gather_binomial.c: packed blocks come down a binomial tree.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/phases.h"

static int subtree(int me, int size)
{
    int low = me & -me;
    return me + low < size ? low : size - me;
}

static void at_root(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, root = shape->root;
    struct tree t = tree_binomial(root, size, root);
    for (int c = t.nchildren - 1; c >= 0; c--) {
        int first = t.child[c], n = subtree(ring(first - root, size), size);
        int head = first + n <= size ? n : size - first;
        sched_send(s, first, loc_make(BUF_SEND, first), head);
        sched_send(s, first, loc_make(BUF_SEND, 0), n - head);
    }
    if (!shape->in_place)
        sched_copy(s, loc_make(BUF_SEND, root), loc_make(BUF_RECV, 0), 1);
}

static void generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, me = ring(shape->rank - shape->root, size);
    struct loc data = loc_make(BUF_RECV, 0);
    if (me == 0) {
        at_root(shape, s);
        return;
    }
    struct tree t = tree_binomial(shape->rank, size, shape->root);
    const int n = subtree(me, size);
    if (n > 1)
        data = sched_temp(s, n);
    int head = t.parent != shape->root || shape->rank + n <= size ? n : size - shape->rank;
    sched_recv(s, t.parent, data, head);
    sched_recv(s, t.parent, loc_add(data, head), n - head);
    sched_fence(s);
    for (int c = t.nchildren - 1; c >= 0; c--) {
        int child = ring(t.child[c] - shape->root, size);
        sched_send(s, t.child[c], loc_add(data, child - me), subtree(child, size));
    }
    sched_copy(s, data, loc_make(BUF_RECV, 0), 1);
}

COLL_ALGORITHM(scatter_binomial, .name = "binomial", .kind = COLL_SCATTER, .needs = NEED_ADJACENT,
               .generate = generate, .doc = "down a binomial tree, packed");
