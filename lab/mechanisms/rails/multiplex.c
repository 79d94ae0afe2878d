/* multiplex.c: FISHPLATE_LAB=IB_STRIPE=turns, shares, window, room or stages: each large message uses one
 * rail [Liu04 8.2.4]. net/rails/mux.h selects the rail for the first four, for each peer. With stages,
 * consecutive large transfers of a process use its rails in turn, whatever the peer, so that the stages of a
 * collective operation, which exchange messages with different peers, use different rails [Liu04 11.2].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "lab/mechanisms/rails/allotments.h"

#define SHORTEST        257 /* bytes; shorter messages use one queue pair, which keeps their order */
#define WINDOW_MESSAGES 16
#define WINDOW_BYTES    (256 * 1024)

struct multiplex {
    enum ib_allot_policy policy;
    uint8_t last; /* stages: rail of the last transfer that was started; RAIL_NONE before the first */
};

static struct multiplex *multiplex_get(const struct ib *ib)
{
    return ib->allot_state;
}

/* NULL: out of memory. */
static struct mux *multiplex_endpoint_state(struct ib_endpoint *ep)
{
    struct ib_pairs *j = ep->pairs;
    const enum mux_policy policy =
        (enum mux_policy)(multiplex_get(ep->ib)->policy - IB_ALLOT_TURNS + MUX_TURNS);
    if (j->allot_peer)
        return j->allot_peer;
    struct mux *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    mux_open(m, policy, j->count, 0);
    mux_settings(m, j->weight, policy == MUX_WINDOW ? WINDOW_MESSAGES : WINDOW_BYTES);
    j->allot_peer = m;
    return m;
}

static int multiplex_choose(struct ib_endpoint *ep, uint64_t bytes, uint32_t *set)
{
    const uint32_t up = ep->pairs->up;
    if (multiplex_get(ep->ib)->policy == IB_ALLOT_STAGES) {
        *set = rail_bit(rail_after(up, multiplex_get(ep->ib)->last));
        return 0;
    }
    struct mux *m = multiplex_endpoint_state(ep);
    if (!m)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the choice of a rail");
    for (unsigned k = 0; k < m->rails; k++)
        if (rail_set_contains(m->up, k) != rail_set_contains(up, k))
            mux_set_rail_up(m, k, rail_set_contains(up, k));
    const unsigned pair = mux_next(m, bytes);
    if (pair == RAIL_NONE)
        return ERR_AGAIN;
    *set = rail_bit(pair);
    return 0;
}

static void multiplex_decline(struct ib_endpoint *ep, uint32_t set, uint64_t bytes)
{
    for (unsigned k = 0; k < RAILS_MAX && multiplex_get(ep->ib)->policy != IB_ALLOT_STAGES; k++)
        if (rail_set_contains(set, k))
            mux_report_completed(multiplex_endpoint_state(ep), k, bytes);
}

static uint32_t multiplex_start(struct ib_endpoint *ep, uint32_t set)
{
    for (unsigned k = 0; k < RAILS_MAX; k++)
        if (rail_set_contains(set, k))
            multiplex_get(ep->ib)->last = (uint8_t)k;
    return 0;
}

static void multiplex_release(struct ib_endpoint *ep, uint32_t set, uint32_t reserved, uint64_t bytes)
{
    (void)reserved;
    multiplex_decline(ep, set, bytes);
}

static void multiplex_close(struct ib *ib)
{
    free(ib->allot_state);
    ib->allot_state = NULL;
}

static void multiplex_close_peer(struct ib_endpoint *ep)
{
    free(ep->pairs->allot_peer);
    ep->pairs->allot_peer = NULL;
}

static void multiplex_ignore_peer(struct ib_endpoint *ep)
{
    (void)ep;
}

static bool multiplex_is_never_busy(const struct ib_endpoint *ep)
{
    (void)ep;
    return false;
}

static void multiplex_refuse_message(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    (void)h;
    (void)len;
    ib_fatal(ep->ib, ep, "it reserves rails: FISHPLATE_IB_STRIPE must be the same on all ranks");
}

static const struct ib_allotment multiplexing = {
    .close = multiplex_close,
    .choose = multiplex_choose,
    .decline = multiplex_decline,
    .start = multiplex_start,
    .cancel = multiplex_ignore_peer,
    .release = multiplex_release,
    .take_message = multiplex_refuse_message,
    .has_messages = multiplex_is_never_busy,
    .is_busy = multiplex_is_never_busy,
    .forget_peer = multiplex_ignore_peer,
    .close_peer = multiplex_close_peer,
};

int multiplex_open(struct ib *ib, enum ib_allot_policy policy)
{
    struct multiplex *m = malloc(sizeof(*m));
    if (!m)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %u rails", ib->nrails);
    *m = (struct multiplex){.policy = policy, .last = RAIL_NONE};
    ib->stripe_from = SHORTEST;
    ib->allot_state = m;
    ib->allot = &multiplexing;
    return 0;
}
