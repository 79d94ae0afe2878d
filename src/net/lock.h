/* lock.h: waiting for locks in the node's shared memory (base/shlock.h) on behalf of a rank. The launcher
 * reports whether an owner is dead; a long wait is recorded for `fishplate why` with the name of the lock and
 * its owner.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_LOCK_H
#define FP_NET_LOCK_H

#include "base/shlock.h"
#include "net/net.h"

/* Returns SHLOCK_ACQUIRED, SHLOCK_TAKEN_OVER or SHLOCK_BROKEN; *dead: the former owner's job rank. Makes no progress. */
enum shlock_result net_lock_wait(struct net *net, struct shlock *l, const char *name, uint32_t *dead);
static inline enum shlock_result net_lock(struct net *net, struct shlock *l, const char *name, uint32_t *dead)
{
    return likely(shlock_acquire_free(l, net->rank)) ? SHLOCK_ACQUIRED : net_lock_wait(net, l, name, dead);
}

/* Waits until ready(arg), which process `owner` of this node makes true, or until that process is dead. */
void net_lock_wait_until_ready(struct net *net, const char *name, uint32_t owner, bool (*ready)(void *arg),
                               void *arg);

#endif
