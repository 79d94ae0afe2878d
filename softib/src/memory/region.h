/* region.h: finds registered memory by its key: regions of this process and of other members. A region of
 * another member that is shared memory is mapped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_REGION_H
#define SOFTIB_REGION_H

#include "fabric/hold.h"

/* A piece of registered memory of a process. */
struct rseg {
    uint64_t addr;
    uint64_t len;
    char *map; /* its address in this process; NULL: only process_vm_readv and process_vm_writev reach it */
    struct sh_mr *mr;
    _Atomic uint64_t *hold; /* reference (hold.h); NULL: a region of this process */
    uint32_t key;
};
/* Finds [addr, addr+len) of a region and holds a reference; false if key, bounds, domain or rights do not
 * match. */
bool mr_hold_remote(struct peer *owner, uint32_t key, uint32_t pd, uint64_t addr, uint64_t len, uint32_t need,
                    struct rseg *out);
/* Finds [addr, addr+len) by an lkey of this process. *at is valid while the lock of the QP is held. */
bool mr_resolve_local(uint32_t key, uint32_t pd, uint64_t addr, uint64_t len, uint32_t need, char **at);
uint32_t mr_next_serial(void);
static inline void mr_release(struct rseg *s)
{
    if (s->hold)
        hold_release(s->hold);
}

#endif
