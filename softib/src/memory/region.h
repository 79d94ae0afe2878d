/* region.h: finds registered memory by its key: this process's own regions, and those of other members, which
 * are mapped here if they are shared memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_REGION_H
#define SOFTIB_REGION_H

#include "fabric/hold.h"

struct rseg { /* a piece of some process's memory */
    uint64_t addr;
    uint64_t len;
    char *map; /* where we can reach it directly; NULL: only by cross-memory copy */
    struct sh_mr *mr;
    _Atomic uint64_t *hold; /* NULL: our own */
    uint32_t key;
};
/* Finds [addr, addr+len) of a region and holds a reference; false if key, bounds, domain or rights do not match. */
bool mr_hold_remote(struct peer *owner, uint32_t key, uint32_t pd, uint64_t addr, uint64_t len, uint32_t need,
                    struct rseg *out);
/* The same for our own lkeys; valid while the QP's lock is held. */
bool mr_resolve_local(uint32_t key, uint32_t pd, uint64_t addr, uint64_t len, uint32_t need, char **at);
uint32_t mr_next_serial(void);
static inline void mr_release(struct rseg *s)
{
    if (s->hold)
        hold_release(s->hold);
}

#endif
