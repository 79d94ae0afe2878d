/* state.c: opens and closes what a communicator keeps for its collectives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/state.h"

#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "coll/debug.h"
#include "coll/executor.h"
#include "coll/select/tuning.h"
#include "obj/context.h"
#include "obj/fault.h"

static bool is_on_one_node(const struct comm *c)
{
    const struct boot *boot = c->proc->boot;
    if (!c->proc->net->area || c->remote)
        return false;
    for (int r = 0; r < c->size; r++) {
        uint32_t job_rank = group_job_rank(c->group, r);
        if (job_rank >= boot->size || boot->node_of[job_rank] != boot->node)
            return false;
    }
    return true;
}

static bool is_on_several_nodes(const struct comm *c)
{
    const struct boot *boot = c->proc->boot;
    bool several = false;
    for (int r = 0; r < c->size && !c->remote; r++) {
        uint32_t job_rank = group_job_rank(c->group, r);
        if (job_rank >= boot->size)
            return false;
        several |= boot->node_of[job_rank] != boot->node;
    }
    return several;
}

/* The number of nodes; the same at every rank, 0 if a rank's node is unknown. Negative: out of memory. */
static int count_nodes(const struct comm *c)
{
    const struct boot *boot = c->proc->boot;
    int count = 0;
    if (c->remote)
        return 0;
    bool *known = calloc(boot->nnodes, sizeof(*known));
    for (int r = 0; r < c->size && known; r++) {
        const uint32_t job_rank = group_job_rank(c->group, r);
        if (job_rank >= boot->size) {
            free(known);
            return 0;
        }
        count += !known[boot->node_of[job_rank]];
        known[boot->node_of[job_rank]] = true;
    }
    if (!known)
        return -1;
    free(known);
    return count;
}

int coll_state_open(struct comm *c, struct coll_state **out)
{
    int rc = comm_check_not_broken(c);
    rc = rc ? rc : coll_open(c->proc);
    if (rc)
        return rc;
    struct coll_state *state = calloc(1, sizeof(*state));
    const int nodes = count_nodes(c);
    if (nodes < 0 || !state) {
        free(state);
        return err_set(MPI_ERR_NO_MEM, "out of memory for the collective state of a communicator");
    }
    state->comm = c;
    /* A rank that dies at a flag leaves the others there. Where the job goes on without it, collectives are messages. */
    state->one_node = !c->proc->net->lost && is_on_one_node(c);
    state->nodes = !c->proc->net->lost && is_on_several_nodes(c);
    state->node_count = nodes;
    state->look_at_record = debug_coll ? debug_check_record : NULL;
    state->page = page_comm_open(c->proc->page, c->context, c->rank, c->size, comm_label(c));
    if (!state->page)
        state->page = &state->own;
    *out = c->coll = state;
    return 0;
}

static void coll_state_close(struct comm *c)
{
    struct coll_state *state = c->coll ? c->coll : c->coll_kept;
    if (!state)
        return;
    if (c->coll)
        mismatch_check_comm(c); /* no call of this communicator will receive the messages that wait now */
    tuning_close(state);
    for (const struct coll_executor *const *e = coll_executors; *e; e++)
        (*e)->close(state);
    page_comm_close(state->page);
    free(state->sources);
    free(state->selected_barrier);
    free(state);
    c->coll = c->coll_kept = NULL;
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
