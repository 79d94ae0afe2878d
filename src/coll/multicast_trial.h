/* multicast_trial.h: finds out for which sizes the broadcasts, allgathers and allreduces of a communicator on three nodes and more are
 * faster by multicast, by trying both (pick.h). The trial begins at the MULTICAST_TRIAL_AT-th blocking call of its kind, so that only
 * communicators that use it often pay, and spends a share of the program's time (trial.h). Nonblocking and persistent
 * broadcasts use what was found; they never try, since a trial waits for all ranks. Broadcasts and allgathers are tried unless
 * an algorithm is named, allreduces only with FISHPLATE_COLL=allreduce=multicast:try=1: two ways to add give different last bits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_MULTICAST_TRIAL_H
#define FP_COLL_MULTICAST_TRIAL_H

#include "coll/select.h"
#include "coll/state.h"

#define MULTICAST_TRIAL_AT 24

struct multicast_means {
    /* One call by multicast with this choice; NULL: by what the rules take. *went: it did go that way. */
    int (*run)(const struct coll_args *args, struct coll_state *state, const struct coll_choice *choice,
               bool *went);
    /* What NULL means there. */
    int (*rules)(const struct coll_args *args, struct coll_state *state, struct coll_choice *out);
    /* Leaves the greatest of all ranks' words in each. */
    int (*greatest)(const struct coll_args *args, struct coll_state *state, uint64_t *word, int words);
};

/* Is this choice to be held against multicast? */
bool multicast_trial_wants(const struct coll_state *state, const struct coll_choice *choice);
/* Before a blocking call of that choice. */
int multicast_trial_step(const struct coll_args *args, struct coll_state *state,
                         const struct multicast_means *means, const struct coll_choice *choice);
/* Was multicast found to be faster for so many bytes? Then it is *choice. */
bool multicast_trial_won(struct coll_state *state, enum coll_kind kind, uint64_t bytes,
                         struct coll_choice *choice);
void multicast_trial_close(struct coll_state *state);

/* pure: the size that is tried for a class, 0: there is no such class; and the class of a message, -1: none. */
uint64_t multicast_trial_size(int step);
int multicast_trial_class(uint64_t bytes);
uint64_t multicast_trial_limit(int class); /* the most bytes of a class */

#endif
