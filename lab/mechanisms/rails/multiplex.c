/* multiplex.c: FISHPLATE_LAB=IB_STRIPE=turns, shares, window or room: each large message takes one rail as a whole [Liu04 8.2.4];
 * net/rails/mux.h chooses the rail.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "lab/mechanisms/rails/allotments.h"

#define SHORTEST        257 /* bytes; one queue pair performs shorter requests in the order of the calls */
#define WINDOW_MESSAGES 16
#define WINDOW_BYTES    (256 * 1024)

static enum mux_policy multiplex_policy(const struct ib *ib)
{
    return (enum mux_policy)((uintptr_t)ib->allot_state + MUX_TURNS);
}

/* NULL: out of memory. */
static struct mux *multiplex_endpoint_state(struct ib_endpoint *ep)
{
    struct ib_pairs *j = ep->pairs;
    const enum mux_policy policy = multiplex_policy(ep->ib);
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
    struct mux *m = multiplex_endpoint_state(ep);
    const uint32_t up = ep->pairs->up;
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
    for (unsigned k = 0; k < RAILS_MAX; k++)
        if (rail_set_contains(set, k))
            mux_done(multiplex_endpoint_state(ep), k, bytes);
}

static uint32_t multiplex_start(struct ib_endpoint *ep, uint32_t set)
{
    (void)ep;
    (void)set;
    return 0;
}

static void multiplex_release(struct ib_endpoint *ep, uint32_t set, uint32_t reserved, uint64_t bytes)
{
    (void)reserved;
    multiplex_decline(ep, set, bytes);
}

static void multiplex_close(struct ib *ib)
{
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

void multiplex_open(struct ib *ib, enum ib_allot_policy policy)
{
    ib->stripe_from = SHORTEST;
    ib->allot_state = (void *)(uintptr_t)(policy - IB_ALLOT_TURNS);
    ib->allot = &multiplexing;
}
