/* trial.h: finds the fastest barrier of a communicator on several nodes by trying the few that the model ranks best
 * [Hoefler05 4.1.1]. The trial does not run when the communicator is created but from its TRIAL_AT-th barrier on, so
 * that only communicators that use barriers often pay for it, and within a share of the program's time. The result serves every
 * other communicator of the same shape.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_TRIAL_H
#define FP_COLL_TRIAL_H

#include "coll/pick.h"
#include "coll/select.h"
#include "coll/state.h"

#define TRIAL_AT   24
#define TRIAL_MOST 8 /* candidates that are tried */

struct trial_shape {
    int ranks, nodes, most; /* most: ranks of one node */
    bool turns;             /* ranks of some node take turns on its processors */
    bool can_switch;
    bool can_wire; /* it is MPI_COMM_WORLD, and there is a barrier network */
};
struct trial_candidate {
    struct coll_choice choice;
    double predicted; /* us, by the model */
};

/* How the trial does its barriers. */
struct trial_means {
    /* One barrier by this choice, numbered as the call. */
    int (*barrier)(const struct coll_args *args, struct coll_state *state, const struct coll_choice *choice);
    /* A barrier that leaves the greatest of all ranks' words in each. */
    int (*greatest)(const struct coll_args *args, struct coll_state *state, uint64_t *word, int words);
};

/* A blocking barrier that nobody named an algorithm for. True: it is done, with *rc. False: *choice may have become what was
 * found before. */
bool trial_barrier(const struct coll_args *args, struct coll_state *state, const struct trial_means *means,
                   struct coll_choice *choice, int *rc);
/* A nonblocking one: *choice may have become what was found before. */
void trial_choose(const struct coll_state *state, struct coll_choice *choice);

/* Other trials spend of the same share of the program's time: ns that this process may spend now, and what it has spent. */
bool trial_wanted(void);
uint64_t trial_allowance(struct proc *p);
void trial_spend(struct proc *p, uint64_t ns);

struct trial_shape trial_shape_of(const struct comm *c); /* without what ranks must agree on */
bool trial_same_shape(const struct trial_shape *a, const struct trial_shape *b);

/* Gives up a trial that is not over. */
void trial_close(struct coll_state *state);

/* What was found, a line for each shape: "8 ranks on 4 nodes: rdma:n=2 3.10 us; tried rdma 3.60, ...". */
void trial_describe(const struct proc *p, char *out, size_t size);

/* pure: the candidates for a shape; the first is what the rules take. */
int trial_candidates(const struct trial_shape *s, struct trial_candidate *out);
void trial_name(const struct coll_choice *choice, char *out, size_t size);
const char *trial_rule_name(const struct trial_shape *s); /* how the rules' choice meets there */

#endif
