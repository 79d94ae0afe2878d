/* peer_death.c: completes requests with an error when a process has died or a communicator is revoked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/peer_death.h"

#include "net/lost.h"
#include "p2p/faulty.h"
#include "p2p/message.h"
#include "p2p/offer.h"
#include "p2p/partitioned.h"
#include "p2p/rendezvous.h"

static COUNTER(failed, "p2p_failed_requests",
               "Sends and receives that ended because a process died or a communicator was revoked.");

bool p2p_has_faults(const struct p2p *p)
{
    return p->faults;
}

static int fault_check_envelope(struct p2p *p, struct envelope env)
{
    int error = env.context & PARTITIONED_CHANNEL ? partitioned_check_message(p, env, &env) : 0;
    env.context &= ~(uint64_t)PARTITIONED_MEET;
    return error || !p->judge ? error : p->judge(p->judge_arg, env);
}

static int fault_set_detail(int error)
{
    if (error == MPIX_ERR_REVOKED)
        return err_set(error, "its communicator was revoked");
    return err_set(error, "a process of its communicator has died");
}

int p2p_probe_fault(struct p2p *p, struct envelope env)
{
    int error = p->faults ? fault_check_envelope(p, env) : 0;
    if (error == MPIX_ERR_PROC_FAILED_PENDING)
        error = MPIX_ERR_PROC_FAILED;
    return error ? fault_set_detail(error) : 0;
}

/* ---- receives that are posted ---- */

/* Suspends a receive, which remains posted: calls that complete the request return
 * MPIX_ERR_PROC_FAILED_PENDING and leave it active. */
static void request_suspend(struct p2p_request *r)
{
    request_change_state(r, STATE_RECV_SUSPENDED);
    request_complete(&r->base, MPIX_ERR_PROC_FAILED_PENDING);
}

/* Makes a suspended receive active again. Other threads read `complete` again under the lock before they use
 * the result. */
void fault_resume_receive(struct p2p_request *r)
{
    request_change_state(r, STATE_RECV_UNMATCHED);
    r->base.error = 0;
    atomic_store_explicit(&r->base.complete, 0, memory_order_relaxed);
}

bool p2p_is_suspended(const struct request *base)
{
    return base->ops == &recv_ops && ((const struct p2p_request *)base)->state == STATE_RECV_SUSPENDED;
}

static bool request_is_internal(const struct request *r)
{
    return r->on_complete != NULL || r->freed;
}

/* True for one round of a persistent receive: the request can be started again. Collectives have odd
 * contexts. */
static bool is_persistent(const struct p2p_request *r)
{
    return r->base.on_complete != NULL && !(r->match.env.context & 1);
}

/* Ends a posted receive with an error. Returns false if a living peer may be writing into the receive's
 * memory: its offers are recalled first, and request_finish_cancel ends the receive. */
static bool fail_posted_receive(struct p2p *p, struct p2p_request *r, int error)
{
    if (request_is_in_state(r, OFFERED_STATES)) {
        r->base.error = error;
        offer_recall_all(r);
        return false;
    }
    counter_add(&failed, 1);
    posted_remove(&p->posted, &r->match);
    request_end(r, fault_set_detail(error));
    return true;
}

void p2p_end_suspended(struct request *base)
{
    struct p2p_request *r = p2p_request(base);
    if (!p2p_is_suspended(base))
        return;
    fault_resume_receive(r);
    fail_posted_receive(base->p2p, r, MPIX_ERR_PROC_FAILED);
}

void p2p_free_suspended(struct request *base)
{
    fault_resume_receive(p2p_request(base));
    base->freed = true;
}

/* Applies the failures known so far to a posted receive; true if the receive has completed. */
static bool apply_faults_to_posted(struct p2p *p, struct p2p_request *r)
{
    int error = fault_check_envelope(p, r->match.env);
    if (error == MPIX_ERR_PROC_FAILED_PENDING) {
        if (r->state == STATE_RECV_SUSPENDED)
            return false;
        if (!r->stack && !request_is_internal(&r->base)) {
            request_suspend(r);
            return false;
        }
        if (!r->stack && !is_persistent(r))
            return false;
        error = MPIX_ERR_PROC_FAILED;
    } else if (r->state == STATE_RECV_SUSPENDED) {
        fault_resume_receive(r);
    }
    return error && fail_posted_receive(p, r, error);
}

bool fault_check_posted(struct p2p *p, struct p2p_request *r)
{
    return apply_faults_to_posted(p, r);
}

static struct p2p_request *posted_request(struct match_entry *e)
{
    return container_of(e, struct p2p_request, match);
}

/* Applies failures to posted receives until one of them ends. Its completion callback may post other
 * receives, and the tables may grow, so the caller starts again. */
static bool apply_faults_until_change(struct p2p *p)
{
    struct match_table *t = &p->posted;
    if (t->lone)
        return apply_faults_to_posted(p, posted_request(t->lone));
    for (int kind = 0; kind < MATCH_KINDS; kind++)
        for (uint32_t i = 0; t->posted[kind] > 0 && i < t->nbuckets; i++)
            list_foreach(pos, &t->buckets[kind][i]) if (apply_faults_to_posted(
                                                            p, posted_request((
                                                                   struct match_entry *)(pos -
                                                                                         kind)))) return true;
    return false;
}

static void apply_faults_to_all_posted(struct p2p *p)
{
    while (apply_faults_until_change(p))
        ;
}

/* ---- unexpected messages that no receive can match any more ---- */

static void fault_refuse_message(struct p2p *p, struct peer *from, uint8_t kind, uint64_t cookie, int error)
{
    struct frame_header answer = {.word = cookie};
    if (kind == FRAME_EAGER)
        return;
    answer.kind = kind == FRAME_RTS ? FRAME_FIN : FRAME_ACK;
    answer.aux = (uint16_t)(kind == FRAME_RTS ? error : 0);
    control_send(p, from, &answer, NULL, 0);
}

/* Returns an error if no receive will match the message: its communicator was revoked, its collective has
 * failed, or it was announced by a process that has died. Otherwise 0. */
static int fault_message_is_lost(struct p2p *p, const struct peer *from, uint8_t kind, struct envelope env)
{
    if (kind == FRAME_RTS && peer_is_lost(from))
        return MPIX_ERR_PROC_FAILED;
    int error = fault_check_envelope(p, env);
    if (error == MPIX_ERR_REVOKED ||
        (error == MPIX_ERR_PROC_FAILED && (env.context & (PARTITIONED_CHANNEL | 1)) == 1))
        return error;
    return 0;
}

bool fault_check_unexpected(struct p2p *p, struct peer *from, const struct frame_header *h, uint64_t cookie)
{
    int error = fault_message_is_lost(p, from, h->kind, header_envelope(h));
    if (error)
        fault_refuse_message(p, from, h->kind, cookie, error);
    return error != 0;
}

static void apply_faults_to_unexpected(struct p2p *p)
{
    struct match_table *t = &p->unexpected;
    for (uint32_t i = 0; t->count > 0 && i < t->nbuckets; i++)
        list_foreach_safe(pos, after, &t->buckets[MATCH_EXACT][i])
        {
            /* link[MATCH_EXACT] is the first member of the entry */
            struct match_entry *e = (struct match_entry *)pos;
            struct message *m = message_of(e);
            int error = fault_message_is_lost(p, m->from, m->kind, e->env);
            if (!error)
                continue;
            fault_refuse_message(p, m->from, m->kind, m->cookie, error);
            unexpected_remove(t, e);
            message_free(m);
        }
}

void p2p_recheck_faults(struct p2p *p)
{
    p->faults = true;
    p->check_posted_from = 0;
    apply_faults_to_all_posted(p);
    apply_faults_to_unexpected(p);
}

/* ---- requests of the dead ---- */

/* Fails a request of a dead peer whose reply will not come. The transport has ended its transfers before. */
static void fail_request_of_dead_peer(struct p2p *p, struct p2p_request *r)
{
    counter_add(&failed, 1);
    int error = MPIX_ERR_PROC_FAILED;
    if (request_is_in_state(r, OFFERED_STATES)) {
        if (r->match.posted)
            posted_remove(&p->posted, &r->match);
        offer_end(r, 0, false);
        /* the error that fail_posted_receive has stored, if any */
        error = r->base.error ? r->base.error : error;
    }
    if (request_is_in_state(r, STATE_BIT(SEND_PIPE) | STATE_BIT(RECV_PIPE)))
        laboratory_pipe.drop(r);
    request_unpublish(r);
    request_unregister(r);
    request_fail(r, fault_set_detail(error));
}

static void fail_requests_of_dead_peer(struct p2p *p, const struct peer *peer)
{
    for (uint32_t i = 0; i < p->ids.size; i++) {
        struct p2p_request *r = p->ids.slots[i].object;
        if (r && r->peer == peer)
            fail_request_of_dead_peer(p, r);
    }
}

static void fault_peer_died(void *ctx, uint32_t number, struct peer *peer)
{
    struct p2p *p = ctx;
    p->faults = true;
    p->check_posted_from = 0;
    if (peer) {
        while (!list_empty(&peer->pending) && peer_resume(peer) > 0)
            ; /* queued sends fail now, and may queue a control frame for the peer */
        fail_requests_of_dead_peer(p, peer);
        while (!list_empty(&peer->pending) && peer_resume(peer) > 0)
            ;
        link_close(peer);
    }
    if (p->died)
        p->died(p->judge_arg, number);
    p2p_recheck_faults(p);
}

void p2p_on_fault(struct p2p *p, p2p_judge *judge_, void (*died_)(void *arg, uint32_t number), void *arg)
{
    p->judge = judge_;
    p->died = died_;
    p->judge_arg = arg;
    p->net->died = fault_peer_died;
}
