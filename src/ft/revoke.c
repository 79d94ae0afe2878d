/* revoke.c: notifies every living member that a communicator is revoked. A member that is notified for the
 * first time notifies the members at distances 1, 2, 4, ... in both directions of the ring of living members.
 * The two nearest would suffice; the others reduce the latency. After a death, members send the notifications
 * again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

#include <stdlib.h>

#include "base/err.h"
#include "ft/round.h"
#include "net/lost.h"
#include "obj/context.h"
#include "obj/epoch.h"
#include "obj/fault.h"

static void revoke_notify_rank(struct comm *c, uint32_t number)
{
    struct frame_header h = {.kind = P2P_FRAME_FAULT, .flags = FT_REVOKE, .context = c->context};
    ft_send(c->proc, number, &h, NULL, 0);
}

static void revoke_notify_all(struct comm *c)
{
    struct ft_members m;
    CHECK_MEMORY(ft_members_open(c, &m) == 0, "the revocation of a communicator");
    uint32_t n = 0, me = 0;
    for (uint32_t i = 0; i < m.n; i++) {
        if (i == m.me)
            me = n;
        if (!net_is_lost(c->proc->net, m.numbers[i]))
            m.numbers[n++] = m.numbers[i];
    }
    for (uint32_t distance = 1; distance < n; distance *= 2) {
        revoke_notify_rank(c, m.numbers[(me + distance) % n]);
        if ((me + distance) % n != (me + n - distance) % n)
            revoke_notify_rank(c, m.numbers[(me + n - distance) % n]);
    }
    ft_members_close(&m);
}

void ft_revoke(struct comm *c)
{
    if (comm_revoke(c))
        revoke_notify_all(c);
}

static bool is_member(const struct comm *c, uint32_t number)
{
    return group_find(c->group, number) != MPI_UNDEFINED ||
           (c->remote && group_find(c->remote, number) != MPI_UNDEFINED);
}

/* Removes revocations of communicators that this process has freed since. */
static void revoke_forget_retired(struct proc *p)
{
    struct ft *ft = p->ft;
    uint32_t n = 0;
    for (uint32_t i = 0; i < ft->nrevoked; i++) {
        if (ft->revoked[2 * i] == UINT32_MAX || context_is_retired(p, ft->revoked[2 * i]))
            continue;
        ft->revoked[2 * n] = ft->revoked[2 * i];
        ft->revoked[2 * n++ + 1] = ft->revoked[2 * i + 1];
    }
    ft->nrevoked = n;
}

void ft_revoke_arrived(struct proc *p, struct comm *c, uint32_t context, uint32_t from)
{
    struct ft *ft = p->ft;
    if (c) {
        if (is_member(c, from))
            ft_revoke(c);
        return;
    }
    if (context_is_retired(p, context))
        return;
    revoke_forget_retired(p);
    uint32_t *grown = realloc(ft->revoked, 2 * (ft->nrevoked + 1) * sizeof(*grown));
    CHECK_MEMORY(grown != NULL, "the revocation of a communicator");
    ft->revoked = grown;
    grown[2 * ft->nrevoked] = context;
    grown[2 * ft->nrevoked++ + 1] = from;
}

/* Applies a revocation that arrived before this process had created the communicator. */
void ft_revoke_apply_early(struct ft *ft, struct comm *c)
{
    for (uint32_t i = 0; i < ft->nrevoked; i++)
        if (ft->revoked[2 * i] == c->context && is_member(c, ft->revoked[2 * i + 1])) {
            ft->revoked[2 * i] = UINT32_MAX;
            ft_revoke(c);
        }
}

void ft_revoke_resend_after_death(struct proc *p, uint32_t number)
{
    for (uint32_t id = 0; id < CONTEXT_IDS; id++)
        if (p->comms[id] && comm_is_revoked(p->comms[id]) && is_member(p->comms[id], number))
            revoke_notify_all(p->comms[id]);
}
