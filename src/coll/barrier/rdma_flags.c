/* rdma_flags.c: flags of the inter-node barrier: sets the partners' flags by RDMA writes and polls this
 * leader's flags.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/barrier/barrier_internal.h"

/* Sets the flag of partner i. If the send queue is full, polls completions until the write is posted,
 * since the partner waits for it. */
int hbarrier_set_partner_flag(struct hbarrier *w, int i, int lane)
{
    const struct hbarrier_partner *p = &w->partner[i];
    const uint8_t turn = w->lane[lane].machine.turn;
    const uint64_t address = p->flag.address + (uint64_t)lane;
    int rc;
    w->busy = true; /* no other run may advance inside net_progress() */
    while ((rc = p->to->ops->put(p->to, &turn, NULL, address, &p->flag.key, 1, NULL)) == ERR_AGAIN)
        net_progress(w->net);
    w->busy = false;
    return rc;
}

void hbarrier_write_round(struct hbarrier_run *r, int round)
{
    for (int i = 0; i < r->w->partners; i++)
        if (r->w->partner_at[i].round == round && r->w->partner_at[i].to >= 0)
            hbarrier_record_error(r, hbarrier_set_partner_flag(r->w, i, r->lane));
}

bool hbarrier_round_written(const struct hbarrier_run *r, int round)
{
    const struct hbarrier *w = r->w;
    const uint8_t turn = hbarrier_get_lane(r)->machine.turn;
    for (int i = 0; i < w->partners; i++)
        if (w->partner_at[i].round == round && w->partner_at[i].from >= 0 &&
            !barrier_flag_is_set(
                atomic_load_explicit(&w->flags[i * HBARRIER_LANES + r->lane], memory_order_acquire), turn))
            return false;
    return true;
}
