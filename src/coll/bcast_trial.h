/* bcast_trial.h: finds out for which sizes the broadcasts of a communicator on several nodes are faster by multicast, by trying both
 * (pick.h). The trial begins at the BCAST_TRIAL_AT-th blocking broadcast, so that only communicators that use it often pay, and
 * spends a share of the program's time (trial.h). Nonblocking broadcasts use what was found; they never try, since a trial waits
 * for all ranks. FISHPLATE_COLL=bcast=multicast:try=1 asks for it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_BCAST_TRIAL_H
#define FP_COLL_BCAST_TRIAL_H

#include "coll/select.h"
#include "coll/state.h"

#define BCAST_TRIAL_AT 24

struct bcast_means {
    /* One broadcast from this root by this choice; NULL: by what the rules take. *went: it did go that way. */
    int (*bcast)(const struct coll_args *args, struct coll_state *state, const struct coll_choice *choice,
                 bool *went);
    /* Leaves the greatest of all ranks' words in each. */
    int (*greatest)(const struct coll_args *args, struct coll_state *state, uint64_t *word, int words);
};

/* Is this choice multicast with try=1? */
bool bcast_trial_wants(const struct coll_choice *choice);
/* Before a blocking broadcast of that choice. */
int bcast_trial_step(const struct coll_args *args, struct coll_state *state, const struct bcast_means *means,
                     const struct coll_choice *choice);
/* Was multicast found to be faster for so many bytes? Then it is *choice. */
bool bcast_trial_won(const struct coll_state *state, uint64_t bytes, struct coll_choice *choice);
void bcast_trial_close(struct coll_state *state);

/* pure: the size that is tried for a class, 0: there is no such class; and the class of a message, -1: none. */
uint64_t bcast_trial_size(int step);
int bcast_trial_class(uint64_t bytes);

#endif
