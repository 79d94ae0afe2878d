/* comm_state.c: opens and closes the state of a communicator's collectives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/comm_state.h"

#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "coll/coll_debug.h"
#include "coll/executor.h"
#include "coll/select/tuning.h"
#include "obj/context.h"
#include "obj/fault.h"

/* Counts the nodes of the ranks, and the ranks of the node with most ranks. The results are the same at
 * every rank, and 0 if the node of a rank is unknown. Returns false if out of memory. */
static bool count_nodes(const struct comm *c, int *nodes, int *most)
{
    const struct boot *boot = c->proc->boot;
    int *ranks = calloc(boot->nnodes, sizeof(*ranks));
    *nodes = *most = 0;
    if (!ranks)
        return false;
    for (int r = 0; r < c->size && !c->remote; r++) {
        const uint32_t job_rank = group_job_rank(c->group, r);
        if (job_rank >= boot->size) {
            *nodes = *most = 0;
            break;
        }
        int *here = &ranks[boot->node_of[job_rank]];
        *nodes += *here == 0;
        *most = MAX(*most, ++*here);
    }
    free(ranks);
    return true;
}

int coll_state_open(struct comm *c, struct coll_state **out)
{
    int rc = comm_check_not_broken(c);
    rc = rc ? rc : coll_open(c->proc);
    if (rc)
        return rc;
    struct coll_state *state = calloc(1, sizeof(*state));
    if (!state || !count_nodes(c, &state->node_count, &state->node_ranks)) {
        free(state);
        return err_set(MPI_ERR_NO_MEM, "out of memory for the collective state of a communicator");
    }
    state->comm = c;
    /* Flags in memory are not used if the job continues after deaths: the other ranks would wait for ever
     * for the flag of a dead rank. Such a job uses messages. */
    state->one_node = !c->proc->net->lost && c->proc->net->area && state->node_count == 1;
    state->nodes = !c->proc->net->lost && state->node_count > 1;
    state->check_record = debug_coll ? debug_check_record : NULL;
    state->page = page_comm_open(c->proc->page, c->context, c->rank, c->size, comm_label(c));
    if (!state->page)
        state->page = &state->own;
    *out = c->coll = state;
    return 0;
}

static void coll_state_close(struct comm *c)
{
    struct coll_state *state = c->coll ? c->coll : c->failed_coll;
    if (!state)
        return;
    if (c->coll)
        mismatch_check_comm(c); /* check now: after this, messages of this communicator cannot be checked */
    tuning_close(state);
    for (const struct coll_executor *const *e = coll_executors; *e; e++)
        (*e)->close(state);
    page_comm_close(state->page);
    free(state->sources);
    free(state->selected_barrier);
    free(state);
    c->coll = c->failed_coll = NULL;
}

int coll_open(struct proc *p)
{
    if (p->comm_closing == coll_state_close)
        return 0;
    int rc = coll_select_open();
    if (!rc) {
        debug_open();
        p->comm_closing = coll_state_close;
        query_open(p);
    }
    return rc;
}

int coll_reselect_algorithms(struct proc *p)
{
    for (int i = 0; p && i < CONTEXT_IDS; i++)
        if (p->comms[i] && p->comms[i]->coll)
            executors_reselect(p->comms[i]->coll);
    return coll_select_open();
}
