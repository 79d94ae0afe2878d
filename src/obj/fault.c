/* fault.c: records dead members and revocation in communicators, and fails their collectives (fault.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/fault.h"

#include <stdlib.h>

#include "base/counter.h"
#include "net/lost.h"
#include "obj/assembly.h"
#include "obj/context.h"
#include "obj/epoch.h"
#include "p2p/peer_death.h"

static COUNTER(revoked, "comm_revoked", "Communicators that were revoked.");

static bool is_dead(const struct comm *c, uint32_t number)
{
    for (int i = 0; c->fault && i < c->fault->ndead; i++)
        if (c->fault->dead[i] == number)
            return true;
    return false;
}

int comm_check_envelope(void *proc, struct envelope env)
{
    const struct comm *c = comm_of_context(proc, env.context);
    if (!c && context_is_retired(proc, (uint32_t)env.context))
        return MPIX_ERR_REVOKED;
    if (!c)
        return assembly_check_message(proc, (uint32_t)env.context, env.tag);
    if (!c->fault)
        return 0;
    if (c->fault->revoked)
        return MPIX_ERR_REVOKED;
    /* Negative tags are from MPI_Comm_create_group, whose members may all be alive (create.c). */
    if ((env.context & 1) && env.tag >= 0)
        return c->broken;
    if (env.source == MPI_ANY_SOURCE)
        return c->fault->nacked < c->fault->ndead ? MPIX_ERR_PROC_FAILED_PENDING : 0;
    if (env.source < 0 || env.source >= comm_peers(c))
        return 0;
    return is_dead(c, group_job_rank(c->remote ? c->remote : c->group, env.source)) ? MPIX_ERR_PROC_FAILED
                                                                                    : 0;
}

static struct comm_fault *get_comm_fault(struct comm *c)
{
    if (!c->fault) {
        c->fault = calloc(1, sizeof(*c->fault));
        CHECK_MEMORY(c->fault != NULL, "the note that a process has died");
    }
    return c->fault;
}

/* Fails the collectives in progress with this error. Later collectives find no collective state and get
 * the error from coll_state_open(), so that intact communicators need no check. */
static void fail_pending_collectives(struct comm *c, int error)
{
    get_comm_fault(c);
    c->broken = error;
    if (c->coll) {
        c->failed_coll = c->coll;
        c->coll = NULL;
    }
    c->messages_may_arrive_later = true; /* messages of the failed collectives may still be under way */
    if (c->local_comm)
        fail_pending_collectives(c->local_comm, error);
}

static void add_dead(struct comm *c, uint32_t number)
{
    struct comm_fault *f = get_comm_fault(c);
    if (is_dead(c, number))
        return;
    uint32_t *grown = realloc(f->dead, (size_t)(f->ndead + 1) * sizeof(*grown));
    CHECK_MEMORY(grown != NULL, "the list of processes that have died");
    f->dead = grown;
    f->dead[f->ndead++] = number;
    if (!c->broken)
        fail_pending_collectives(c, MPIX_ERR_PROC_FAILED);
}

static bool has_member(const struct comm *c, uint32_t number)
{
    return group_find(c->group, number) != MPI_UNDEFINED ||
           (c->remote && group_find(c->remote, number) != MPI_UNDEFINED);
}

void comm_member_died(void *proc, uint32_t number)
{
    struct proc *p = proc;
    for (uint32_t id = 0; id < CONTEXT_IDS; id++)
        if (p->comms[id] && has_member(p->comms[id], number))
            add_dead(p->comms[id], number);
    if (p->rma_member_died)
        p->rma_member_died(p, number);
    if (p->member_died)
        p->member_died(p, number);
}

static void fault_check_members(struct comm *c, const struct group *g)
{
    for (int i = 0; g && i < g->size; i++)
        if (net_is_lost(c->proc->net, group_job_rank(g, i)))
            add_dead(c, group_job_rank(g, i));
}

void comm_fault_check(struct comm *c)
{
    if (likely(c->proc->net->ndead == 0))
        return;
    fault_check_members(c, c->group);
    fault_check_members(c, c->remote);
    if (c->fault)
        p2p_recheck_faults(c->proc->p2p);
    if (c->proc->comm_created)
        c->proc->comm_created(c);
}

void comm_fault_free(struct comm *c)
{
    if (c->fault)
        free(c->fault->dead);
    free(c->fault);
}

bool comm_revoke(struct comm *c)
{
    struct comm_fault *f = get_comm_fault(c);
    if (f->revoked)
        return false;
    f->revoked = true;
    counter_add(&revoked, 1);
    fail_pending_collectives(c, MPIX_ERR_REVOKED);
    if (c->local_comm)
        get_comm_fault(c->local_comm)->revoked = true;
    /* Sends find their peer in this table: sends to the revoked peer fail. */
    for (int i = 0; i < comm_peers(c); i++)
        c->peers[i] = net_get_revoked_peer(c->proc->net);
    p2p_recheck_faults(c->proc->p2p);
    return true;
}

int comm_failed_group(struct comm *c, bool acked, struct group **out)
{
    const struct comm_fault *f = c->fault;
    return group_from_table(c->proc->rank, f ? f->dead : NULL, f ? (acked ? f->nacked : f->ndead) : 0, out);
}

int comm_acknowledge(struct comm *c, int n)
{
    struct comm_fault *f = c->fault;
    if (!f)
        return 0;
    if (n > f->nacked) {
        f->nacked = MIN(n, f->ndead);
        p2p_recheck_faults(c->proc->p2p);
    }
    return f->nacked;
}

int comm_check_not_broken(struct comm *c)
{
    if (likely(!c->broken))
        return 0;
    return c->broken == MPIX_ERR_REVOKED
               ? err_set(MPIX_ERR_REVOKED, "%s has been revoked", comm_label(c))
               : err_set(c->broken, "%s has lost %d of its processes", comm_label(c), c->fault->ndead);
}
