/* ports.c: changes of port states, at the times of SOFTIB_FABRIC (down_at=, up_at=) or by `softib ctl`,
 * which writes the new state to the registry and rings the doorbell of every member; and removal of
 * adapters by `softib ctl`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/ports.h"
#include "fabric/proc.h"

static uint32_t seen_down[FAB_MAX_PORTS / 32];

/* Applies the planned changes (fail=) of a port that are due. The first member that calls this makes each
 * change, once. */
static void apply_planned_changes(const struct fab_port *f, struct reg_port *r, uint64_t since)
{
    unsigned planned = atomic_load(&r->plan);
    if (!(planned & 1) && f->down_at <= since && !(atomic_fetch_or(&r->plan, 1) & 1))
        atomic_store(&r->up, 0);
    if (!(planned & 2) && f->up_at <= since && !(atomic_fetch_or(&r->plan, 2) & 2))
        atomic_store(&r->up, 1);
}

uint64_t ports_report_changes(void (*changed)(uint32_t linear, bool up))
{
    uint64_t since = now_ns() - proc.reg->began, next = NEVER;
    uint32_t per_node = proc.fab.hcas * proc.fab.ports, first = proc.fab.node * per_node;
    for (uint32_t i = 0; i < proc.fab.nports; i++) {
        const struct fab_port *f = &proc.fab.port[i];
        struct reg_port *r = &proc.reg->port[i];
        apply_planned_changes(f, r, since);
        if (f->down_at > since)
            next = min_u64(next, f->down_at);
        if (f->up_at > since)
            next = min_u64(next, f->up_at);
        bool down = !atomic_load(&r->up), was = seen_down[i / 32] >> (i % 32) & 1;
        if (down != was && i >= first && i < first + per_node) {
            seen_down[i / 32] ^= 1u << (i % 32);
            changed(i, !down);
        }
    }
    return next == NEVER ? NEVER : next + proc.reg->began;
}

void ports_report_removed_adapters(void (*removed)(uint32_t hca))
{
    static bool known[16];
    for (uint32_t hca = 0; hca < proc.fab.hcas; hca++)
        if (!known[hca] && hca_is_removed(hca)) {
            known[hca] = true;
            removed(hca);
        }
}
