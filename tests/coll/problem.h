/* problem.h: one collective call of all ranks: the contents of their buffers before the call and the
 * expected contents after it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_COLL_PROBLEM_H
#define FP_TESTS_COLL_PROBLEM_H

#include "machine.h"

struct problem {
    const struct coll_algorithm *algorithm;
    int size, remote_size;
    int root;      /* a rank of the first group; the ranks of the second group are the leaves */
    int64_t count; /* number of items */
    bool in_place, commutative, adjacent;
    int64_t segment;
    int window;
    int parameter[COLL_PARAMETERS];
    int pattern; /* reduce_scatter: pattern of block sizes; neighbourhoods: kind of graph */
};

/* Runs the problem; on failure prints the error and the shape. */
bool problem_check(const struct problem *p, bool print);

#endif
