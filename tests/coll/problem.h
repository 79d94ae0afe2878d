/* problem.h: one collective call of all ranks: what their buffers hold before, and what they must hold after.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_COLL_PROBLEM_H
#define FP_TESTS_COLL_PROBLEM_H

#include "machine.h"

struct problem {
    const struct coll_algorithm *algorithm;
    int size, remote_size;
    int root;      /* in the first group; ranks of the second are the leaves */
    int64_t count; /* items */
    bool in_place, commutative, adjacent;
    int64_t segment;
    int window;
    int parameter[COLL_PARAMETERS];
    int pattern; /* reduce_scatter: sizes of blocks; neighbourhoods: which graph */
};

/* Runs the problem; on failure prints what failed, and for which shape. */
bool problem_check(const struct problem *p, bool print);

#endif
