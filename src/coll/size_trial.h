/* size_trial.h: finds the fastest schedule of broadcasts, gathers, scatters, allgathers, alltoalls, reduces and allreduces between
 * nodes for each class of sizes, by trying algorithms and segment sizes against what the rules take (pick.h). A class is tried from the
 * SIZE_TRIAL_AT-th blocking call of its kind and size on, so that only what a program uses often costs anything, within the share of
 * the program's time that all trials have (trial.h). What was found serves nonblocking and persistent calls too, and other
 * communicators of the same shape.
 *
 * Another algorithm adds in another order. In deterministic mode reductions are not tried.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SIZE_TRIAL_H
#define FP_COLL_SIZE_TRIAL_H

#include "coll/call.h"
#include "coll/pick.h"
#include "coll/trial.h"

#define SIZE_TRIAL_AT   24
#define SIZE_TRIAL_MOST 6 /* candidates that are tried */
#define SIZE_CLASSES    34

struct size_means {
    /* One call by this schedule; what the rules take. */
    int (*run)(const struct coll_args *args, struct coll_state *state, const struct coll_choice *choice);
    int (*rules)(const struct coll_args *args, struct coll_state *state, struct coll_choice *out);
    /* Leaves the greatest of all ranks' words in each. */
    int (*greatest)(const struct coll_args *args, struct coll_state *state, uint64_t *word, int words);
};

/* Before a blocking call for which *choice was selected: may try. */
int size_trial_step(const struct coll_args *args, struct coll_state *state, const struct call *call,
                    const struct size_means *means, const struct coll_choice *choice);
/* *choice becomes what was found for that call, if anything. */
void size_trial_choose(const struct coll_args *args, const struct coll_state *state, const struct call *call,
                       struct coll_choice *choice);
/* Is a class of this kind being tried? Then others wait with their trials. */
bool size_trial_is_on(const struct coll_state *state, enum coll_kind kind);
void size_trial_close(struct coll_state *state);

/* pure: the class of a call of so many bytes, -1: none; the most bytes of a class. A power of two is a class of its own, and so are
 * the sizes from one to the next: protocols change at powers of two (a message of 4096 bytes may take another way than one of 3072), and
 * programs like them. No rule changes within a class. */
int size_class(uint64_t bytes);
uint64_t size_limit(int class);

/* size_list.c, pure: the rules' choice first, then others with the time in us that the model predicts. */
int size_candidates(const struct coll_shape *shape, uint64_t bytes, bool turns,
                    const struct coll_choice *rule, struct trial_candidate *out);
double size_predict(const struct coll_choice *choice, int ranks, uint64_t bytes, bool turns);
void size_name(const struct coll_choice *choice, char *out, size_t size);

/* found.c. */
/* A line for each, the newest first: "bcast of 4096 bytes, 8 ranks on 4 nodes: ...". */
void size_describe(const struct proc *p, char *out, size_t size);

#endif
