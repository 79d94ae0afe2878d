/* epoch.h: reuse of a communicator's id while messages about the communicator may still arrive: it lost a
 * member, was revoked, or was used in an agreement, about which a late process may send a query after the
 * communicator was freed.
 *
 * The number of a communicator is its id and an epoch; messages carry both. If a communicator is freed with
 * no message under way, its id is free at once. Otherwise it is retired: its id is not used until few ids are
 * left. Then all retired ids become free together, and the epoch of this process rises above the epochs of
 * the retired communicators. All members of a new communicator use the same epoch: the maximum over the
 * members.
 *
 * Proof that an old message is never matched in a new communicator: let P be a process that had a
 * communicator (id, e), retired it, and is now in another one (id, f). A message about (id, e) only goes to
 * its members, so only they can mistake it. P could offer the id only after it had become free again, when
 * its own epoch became at least e + 1. f is at least the epoch of P when it offered the id. So f > e, and the
 * numbers differ.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_EPOCH_H
#define FP_OBJ_EPOCH_H

#include "obj/context.h"

/* Retires the number of a communicator for which messages may still be under way. */
void context_retire(struct proc *p, uint32_t number);

/* Called before ids are offered: makes retired ids free again if few others are left, or if `needed`. */
void context_free_retired_ids(struct proc *p, bool needed);

/* True if this process has retired the communicator of this context: nothing will receive the message. */
bool context_is_retired(const struct proc *p, uint32_t context);

/* True if this process may use a communicator with this number: it has retired none with this id and the
 * same or a later epoch. */
bool context_is_current(const struct proc *p, uint32_t number);

#endif
