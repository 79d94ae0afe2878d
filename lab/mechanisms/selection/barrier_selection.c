/* barrier_selection.c: FISHPLATE_LAB=BARRIER_SELECT=n measures n barriers of every algorithm when a
 * communicator is created, and uses the fastest for its blocking barriers [Hoefler05 4.1.1,
 * coll_swbarr_selection 0]. The library measures by use instead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/tunable.h"
#include "coll/executor.h"

#define WARM_UP_BARRIERS \
    3 /* the first barriers of an algorithm open connections and register memory and are not timed */

static LABORATORY_INT(select_runs, "BARRIER_SELECT", 0, 0, 100000,
                      "Barriers of every algorithm that are measured when a communicator is created by a "
                      "blocking call; the fastest algorithm then serves its blocking barriers. 0: none, the "
                      "rules select. Must be the same on all ranks.");

static COUNTER(selected, "coll_barrier_selected",
               "Communicators whose barrier was selected by measuring all algorithms at their creation.");

/* Runs `times` barriers of an algorithm. False: no executor accepts the algorithm here. */
static bool selection_run_barriers(const struct coll_args *args, struct coll_state *state,
                                   const struct coll_choice *choice, int times, int *rc)
{
    bool accepted = true;
    for (int i = 0; i < times && accepted && !*rc; i++) {
        struct call call;
        *rc = call_make(&call, args, state, FORM_BLOCKING);
        if (*rc)
            return false;
        accepted = algorithm_fits(choice->algorithm, &call.shape) &&
                   (!(choice->algorithm->needs & NEED_NODE) || call.where.one_node) &&
                   (!(choice->algorithm->needs & NEED_NODES) || call.where.nodes) &&
                   executor_try(&call, choice, NULL, rc);
        call_free(&call);
    }
    return accepted && !*rc;
}

/* Sets *ns to the maximum time over all ranks, so that all ranks select the same algorithm. */
static int selection_measure(struct comm *c, struct coll_state *state, const struct coll_choice *choice,
                             uint64_t *ns)
{
    const struct coll_args args = {.kind = COLL_BARRIER, .name = "MPI_Barrier", .comm = c};
    const struct coll_side side = {.buf = ns, .count = 1, .type = dtype_from_handle(MPI_UINT64_T)};
    const struct coll_args most = {.kind = COLL_ALLREDUCE,
                                   .name = "MPI_Allreduce",
                                   .comm = c,
                                   .send = side,
                                   .recv = side,
                                   .op = op_from_handle(MPI_MAX),
                                   .in_place = true};
    int rc = 0;
    *ns = UINT64_MAX;
    if (selection_run_barriers(&args, state, choice, WARM_UP_BARRIERS, &rc)) {
        const uint64_t start = clock_ns();
        selection_run_barriers(&args, state, choice, (int)select_runs.value, &rc);
        *ns = clock_ns() - start;
    }
    return rc ? rc : coll_run(&most);
}

int coll_laboratory_select_barrier(struct comm *c)
{
    struct coll_state *state;
    uint64_t ns, least = UINT64_MAX;
    if (select_runs.value == 0 || c->remote || c->size < 2)
        return 0;
    int rc = coll_state(c, &state);
    struct coll_choice *best = rc ? NULL : malloc(sizeof(*best));
    if (!best)
        return rc ? rc : err_set(MPI_ERR_NO_MEM, "out of memory for the selection of a barrier");
    for (size_t i = 0; !rc && i < algorithms_count(); i++) {
        const struct coll_choice choice = {.algorithm = algorithms_get(i), .named = true};
        if (choice.algorithm->kind != COLL_BARRIER)
            continue;
        rc = selection_measure(c, state, &choice, &ns);
        if (!rc && ns < least) {
            least = ns;
            *best = choice;
        }
    }
    executors_reselect(state);
    state->cached[COLL_BARRIER] = NULL;
    if (rc || least == UINT64_MAX) {
        free(best);
        return rc;
    }
    state->selected_barrier = best;
    counter_add(&selected, 1);
    return 0;
}
