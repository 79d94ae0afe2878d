/* reduce_binomial.c: up a binomial tree. The tree hangs from the root when operands may change places,
 * otherwise from rank 0, which hands the result to the root.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void reduce_binomial_generate(const struct coll_shape *shape, struct sched *s)
{
    const int top = shape->commutative ? shape->root : 0;
    struct tree t = tree_binomial(shape->rank, shape->size, top);
    struct loc out = loc_make(BUF_RECV, 0);
    if (top == shape->root) {
        tree_reduce(s, &t, shape->commutative, shape_input(shape), out, shape->count, shape->segment);
        return;
    }
    struct loc result = shape->rank == top ? sched_temp(s, shape->count) : out;
    tree_reduce(s, &t, shape->commutative, shape_input(shape), result, shape->count, shape->segment);
    if (shape->rank == top)
        sched_send(s, shape->root, result, shape->count);
    if (shape->rank == shape->root)
        sched_recv(s, top, out, shape->count);
}

COLL_ALGORITHM(reduce_binomial, .name = "binomial", .kind = COLL_REDUCE, .segment = true,
               .generate = reduce_binomial_generate, .doc = "up a binomial tree");
