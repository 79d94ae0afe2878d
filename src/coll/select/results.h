/* results.h: results of tuning in this process: a new communicator of the same shape starts with them, and
 * tools print them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SELECT_RESULTS_H
#define FP_COLL_SELECT_RESULTS_H

#include "coll/select/tuning.h"

struct proc;

/* Shape of a communicator; communicators of the same shape share results. */
struct result_shape {
    int ranks, nodes;
    int max_node_ranks; /* ranks of the node with the most ranks */
};

struct result {
    struct result_shape shape;
    enum coll_kind kind;
    int class;
    int best, count; /* index of the fastest candidate; number of candidates */
    struct coll_candidate candidate[TUNE_CANDIDATES];
    uint32_t ns[TUNE_CANDIDATES]; /* measured time by candidate; 0: not measured */
};

/* Returns the result for this shape, operation and size class, or NULL. */
const struct result *result_find(const struct proc *p, const struct result_shape *s, enum coll_kind kind,
                                 int class);
/* The measured time of the choice in ns; 0: unknown. r may be NULL. */
uint32_t result_get_cost(const struct result *r, const struct coll_choice *choice);
/* Stores a result; replaces an earlier one of the same shape, operation and size class. */
void result_store(struct proc *p, const struct result *r);

/* Writes one line for each result, the newest first: "bcast of 4096 bytes, 8 ranks on 4 nodes: ...". */
void results_describe(const struct proc *p, char *out, size_t size);

#endif
