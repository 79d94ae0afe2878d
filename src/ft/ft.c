/* ft.c: MPIX_Comm_agree and MPIX_Comm_shrink as requests, implemented by agreements (round.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/err.h"
#include "ft/round.h"
#include "net/lost.h"
#include "obj/context.h"
#include "obj/epoch.h"
#include "obj/errhandler.h"
#include "obj/fault.h"
#include "obj/handle.h"

static COUNTER(agreed, "ft_agreements",
               "Agreements completed: calls of MPIX_Comm_agree, and one in MPI_Finalize.");
static COUNTER(shrunk, "ft_shrinks", "Communicators created by MPIX_Comm_shrink.");

struct ft_request {
    struct request base;
    struct comm *comm;     /* retained */
    int *flag;             /* agree: the user's flag */
    MPI_Comm *handle;      /* shrink: the user's handle, or NULL */
    struct comm *made;     /* shrink: the new communicator */
    bool single;           /* shrink: this request has set proc.context_busy */
    bool offered_retired;  /* shrink: the last round offered all ids, including retired ones */
    struct net_hook again; /* shrink: hook that begins the next round */
};

static void ft_request_release(struct request *base)
{
    struct ft_request *r = container_of(base, struct ft_request, base);
    comm_release(r->comm);
    base->obj.magic = MAGIC_FREED;
    objmem_free(r);
}

static const struct request_ops ft_ops = {.name = "agreement", .release = ft_request_release};

static struct ft_request *request_new(struct comm *c)
{
    struct ft_request *r = objmem_new(sizeof(*r));
    if (!r)
        return NULL;
    request_setup(&r->base, c->proc->p2p, &ft_ops);
    r->comm = comm_retain(c);
    return r;
}

/* ---- agreement ---- */

static bool set_has_bit(const uint64_t *set, uint32_t i)
{
    return set[i / 64] >> i % 64 & 1;
}

/* Completes an agreement. words[0] is the flag; the other words are a bit mask of processes whose deaths
 * all members have acknowledged. */
static void complete_agreement(struct ft_round *round, void *arg)
{
    struct ft_request *r = arg;
    const uint64_t *words = agree_get_result(round->agree);
    int error = 0;
    *r->flag = (int)(uint32_t)words[0];
    for (uint32_t i = 0; i < round->members.n; i++)
        if (agree_is_named_dead(round->agree, i) && !set_has_bit(words + 1, i))
            error = err_set(MPIX_ERR_PROC_FAILED,
                            "a process of %s has died, and not all other members have acknowledged it with "
                            "MPIX_Comm_ack_failed",
                            comm_label(r->comm));
    counter_add(&agreed, 1);
    request_complete(&r->base, error);
}

static uint64_t *make_agreement_words(struct comm *c, int flag, uint32_t *nwords)
{
    struct ft_members m;
    if (ft_members_open(c, &m) != 0)
        return NULL;
    *nwords = 1 + (m.n + 63) / 64;
    uint64_t *words = calloc(*nwords, sizeof(*words));
    for (int k = 0; words && c->fault && k < c->fault->nacked; k++)
        for (uint32_t i = 0; i < m.n; i++)
            if (m.numbers[i] == c->fault->dead[k])
                words[1 + i / 64] |= (uint64_t)1 << i % 64;
    if (words)
        words[0] = (uint32_t)flag;
    ft_members_close(&m);
    return words;
}

int ft_agree_start(struct comm *c, int *flag, struct request **out)
{
    struct ft_request *r = request_new(c);
    uint32_t nwords;
    uint64_t *words = r ? make_agreement_words(c, *flag, &nwords) : NULL;
    int rc = words ? 0 : err_set(MPI_ERR_NO_MEM, "out of memory for an agreement");
    if (!rc) {
        r->flag = flag;
        rc = ft_round_begin(c, words, nwords, 0, complete_agreement, r);
    }
    free(words);
    if (rc && r)
        request_free(&r->base);
    if (!rc)
        *out = &r->base;
    return rc;
}

static int wait_and_free_request(struct request *r)
{
    int rc = p2p_wait(r->p2p, r);
    request_free(r);
    return rc;
}

int ft_agree(struct comm *c, int *flag)
{
    struct request *r;
    int rc = ft_agree_start(c, flag, &r);
    return rc ? rc : wait_and_free_request(r);
}

/* ---- shrinking ---- */

static int shrink_begin(struct ft_request *r);

/* Creates the group of the ranks of one side that the agreement does not report dead. Also records the
 * reported deaths at this process: the launcher may not have reported all of them yet. */
static int group_create_living(struct comm *c, const struct group *side, const struct ft_round *round,
                               struct group **out)
{
    uint32_t *numbers = malloc(((size_t)side->size + 1) * sizeof(*numbers));
    int n = 0;
    if (!numbers)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a communicator of the surviving processes");
    for (int i = 0; i < side->size; i++) {
        uint32_t number = group_job_rank(side, i), at = 0;
        while (round->members.numbers[at] != number)
            at++;
        if (!agree_is_named_dead(round->agree, at))
            numbers[n++] = number;
        else if (!net_is_lost(c->proc->net, number))
            net_lost_give_up_peer(c->proc->net, number);
    }
    int rc = group_from_table(c->proc->rank, numbers, n, out);
    free(numbers);
    return rc;
}

static int shrink_build_comm(struct ft_request *r, const struct ft_round *round, const uint32_t ids[2])
{
    struct comm *c = r->comm;
    struct group *group = NULL, *remote = NULL;
    struct comm *made;
    int rc = group_create_living(c, c->group, round, &group);
    if (!rc && c->remote)
        rc = group_create_living(c, c->remote, round, &remote);
    if (rc) {
        group_release(group);
        return rc;
    }
    rc = comm_alloc(c->proc, group, remote, &made);
    if (rc)
        return rc;
    made->errhandler = errhandler_retain(c->errhandler);
    comm_set_label(made, "the rest of", c);
    rc = comm_activate(made, ids);
    if (rc) {
        comm_release(made);
        return rc;
    }
    r->made = made;
    if (r->handle)
        *r->handle = comm_handle(made);
    counter_add(&shrunk, 1);
    return MPI_SUCCESS;
}

/* Words of the agreement in a shrink: mask of context ids that are free at all members, flag that all
 * members could offer their ids, highest epoch. */
enum { SHRINK_OFFERED = CONTEXT_SINGLE_WORDS, SHRINK_EPOCH, SHRINK_WORDS };

static int shrink_retry_hook(struct net_hook *hook)
{
    struct ft_request *r = container_of(hook, struct ft_request, again);
    list_remove(&hook->link);
    int error = shrink_begin(r);
    if (error)
        request_complete(&r->base, error);
    return 1;
}

/* Tries the shrink again from a progress hook. A process that is the only member would otherwise loop
 * inside progress, where another communicator is being created. The hook is prepended because
 * net_progress() would run an appended hook in the same pass, without end. */
static void schedule_shrink_retry(struct ft_request *r)
{
    r->again.progress = shrink_retry_hook;
    list_prepend(&r->comm->proc->net->hooks, &r->again.link);
}

/* Restarts a shrink for which no context id was free at all processes: another communicator was being
 * created at a process, or retired ids must be freed first. */
static int restart_shrink(struct ft_request *r, bool offered)
{
    if (offered && r->offered_retired)
        return err_set(MPI_ERR_OTHER, "more than %d communicators exist at once; free some",
                       64 * CONTEXT_SINGLE_WORDS);
    r->offered_retired = offered;
    schedule_shrink_retry(r);
    return MPI_SUCCESS;
}

static void complete_shrink(struct ft_round *round, void *arg)
{
    struct ft_request *r = arg;
    struct proc *p = r->comm->proc;
    const uint64_t *words = agree_get_result(round->agree);
    uint32_t ids[2];
    int wanted = r->comm->remote ? 2 : 1, error;
    if (r->single)
        p->context_busy = false;
    r->single = false;
    if (context_pick_ids(words, 0, CONTEXT_SINGLE_WORDS, 0, wanted, ids)) {
        context_add_epoch(ids, wanted, words[SHRINK_EPOCH]);
        for (int i = 0; i < wanted; i++)
            context_id_reserve(p, ids[i]);
        error = shrink_build_comm(r, round, ids);
        for (int i = 0; i < wanted && error; i++)
            context_retire(p, ids[i]); /* not free: other processes may already send on the ids */
    } else {
        error = restart_shrink(r, words[SHRINK_OFFERED]);
        if (!error)
            return;
    }
    request_complete(&r->base, error);
}

static int shrink_begin(struct ft_request *r)
{
    struct proc *p = r->comm->proc;
    uint64_t words[SHRINK_WORDS] = {0};
    context_free_retired_ids(p, r->offered_retired);
    if (!p->context_busy) {
        r->single = p->context_busy = true;
        memcpy(words, p->context_mask, CONTEXT_SINGLE_WORDS * sizeof(*words));
        words[SHRINK_OFFERED] = 1;
    }
    words[SHRINK_EPOCH] = p->context_epoch;
    return ft_round_begin(r->comm, words, SHRINK_WORDS, 1, complete_shrink, r);
}

static int shrink_new(struct comm *c, MPI_Comm *handle, struct ft_request **out)
{
    struct ft_request *r = request_new(c);
    if (!r)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a communicator of the surviving processes");
    r->handle = handle;
    int rc = shrink_begin(r);
    if (rc)
        request_free(&r->base);
    else
        *out = r;
    return rc;
}

int ft_shrink(struct comm *c, struct comm **made)
{
    struct ft_request *r;
    int rc = shrink_new(c, NULL, &r);
    if (rc)
        return rc;
    rc = p2p_wait(r->base.p2p, &r->base);
    *made = r->made;
    request_free(&r->base);
    return rc;
}

int ft_shrink_start(struct comm *c, MPI_Comm *made, struct request **out)
{
    struct ft_request *r;
    int rc = shrink_new(c, made, &r);
    if (!rc)
        *out = &r->base;
    return rc;
}

/* ---- events ---- */

static void ft_frame_arrived(void *arg, struct peer *from, const struct frame_header *h, const void *payload,
                             size_t len)
{
    struct proc *p = arg;
    CHECK(h->context < 1u << 31, "a fault-tolerance message names an invalid communicator");
    if (h->flags == FT_REVOKE)
        ft_revoke_arrived(p, comm_of_context(p, h->context), h->context, from->rank);
    else if (h->flags == FT_LEFT)
        ft_round_handle_departure(p, h->context);
    else if (h->flags == FT_ASK)
        ft_round_add_departure_request(p, from->rank);
    else
        ft_round_arrived(p, from, h, payload, len);
}

/* Called for frames that arrive while this process closes its connections in MPI_Finalize. A rank that is
 * still in the agreement because of a death receives the reply FT_LEFT, with which it can finish. This
 * process takes part in no further agreement: its messages could arrive at ranks that have closed their
 * connections. */
static void reply_after_finalize(void *arg, struct peer *from, const struct frame_header *h,
                                 const void *payload, size_t len)
{
    struct agree_message m = {0};
    const bool is_agreement = h->flags == FT_AGREE && len >= sizeof(m);
    if (is_agreement)
        memcpy(&m, payload, sizeof(m));
    if (h->flags == FT_ASK || (is_agreement && m.kind == AGREE_UP && !m.decided))
        ft_reply_departed(arg, from->rank, h->context);
}

static void on_member_died(struct proc *p, uint32_t number)
{
    ft_revoke_resend_after_death(p, number);
    ft_round_died(p, number);
}

static void on_comm_created(struct comm *c)
{
    ft_revoke_apply_early(c->proc->ft, c);
}

/* Waits in MPI_Finalize until all living processes have called it and no process needs further replies. */
static int ft_quiesce(struct proc *p)
{
    int flag = 1, rc = ft_agree(p->world, &flag);
    return rc == MPIX_ERR_PROC_FAILED ? MPI_SUCCESS : rc;
}

static int ft_barrier_of_living(struct comm *c)
{
    int flag = 1;
    return ft_agree(c, &flag);
}

static void ft_close_proc(struct proc *p)
{
    struct ft *ft = p->ft;
    p2p_set_layer_handler(p->p2p, P2P_FRAME_FAULT, p->net->lost ? reply_after_finalize : NULL, p);
    for (uint32_t i = 0; i < ft->naskers; i++)
        ft_reply_departed(p, ft->askers[i], p->world->context);
    list_foreach_safe(pos, after, &ft->rounds) ft_round_free(list_entry(pos, struct ft_round, link));
    list_foreach_safe(pos, after, &ft->early)
    {
        list_remove(pos);
        free(list_entry(pos, struct ft_early, link));
    }
    free(ft->revoked);
    free(ft->askers);
    free(ft);
    p->ft = NULL;
    p->member_died = NULL;
    p->comm_created = NULL;
    p->agreed_comm_freed = NULL;
    p->living_members_barrier = NULL;
}

int ft_open(struct proc *p)
{
    struct ft *ft = p->ft = calloc(1, sizeof(*ft));
    if (!ft)
        return err_set(MPI_ERR_NO_MEM, "out of memory at start-up");
    list_init(&ft->rounds);
    list_init(&ft->early);
    p->member_died = on_member_died;
    p->comm_created = on_comm_created;
    p->agreed_comm_freed = ft_round_begin_farewell;
    p->ft_closing = ft_close_proc;
    p->living_members_barrier = ft_barrier_of_living;
    if (p->net->lost)
        p->quiesce = ft_quiesce;
    p2p_set_layer_handler(p->p2p, P2P_FRAME_FAULT, ft_frame_arrived, p);
    return MPI_SUCCESS;
}
