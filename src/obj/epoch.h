/* epoch.h: reuse of a communicator's id while messages about the communicator may still arrive: it lost a
 * member, was revoked, or was used in an agreement, about which a late process may send a query after the
 * communicator was freed.
 *
 * The number of a communicator is its id and an epoch; messages carry both. A communicator that ends
 * cleanly, with nothing under way, gives its id back, and its epoch means nothing. One that does not is
 * retired: its id waits until few ids are left. Then all that wait become free together, and the epoch of
 * this process rises above theirs. All members of a new communicator take the same epoch, the highest that
 * one of them has.
 *
 * Why an old message is never taken for a new one: let P be a process that had a communicator (id, e),
 * retired it, and is now in another one (id, f). A message about (id, e) only goes to its members, so only
 * they can mistake it. P could offer the id only after it had become free again, when its own epoch became
 * at least e + 1. f is at least the epoch of P when it offered the id. So f > e, and the numbers differ.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_EPOCH_H
#define FP_OBJ_EPOCH_H

#include "obj/context.h"

/* Retires the number of a communicator for which messages may still be under way. */
void context_retire(struct proc *p, uint32_t number);

/* Called before ids are offered: makes retired ids free again if few others are left, or if `needed`. */
void contexts_return(struct proc *p, bool needed);

/* True if this process has retired the communicator of this context: nothing will receive the message. */
bool context_is_retired(const struct proc *p, uint32_t context);

/* True unless the number belongs to an epoch whose end this process has seen. */
bool context_is_current(const struct proc *p, uint32_t number);

#endif
