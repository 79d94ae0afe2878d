/* revoke.h: the part of ft.h that notifies all members that their communicator is revoked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_FT_REVOKE_H
#define FP_FT_REVOKE_H

#include "ft/ft.h"
#include "ft/round.h"

/* A revocation has arrived. c: NULL when this process has no such communicator. */
void ft_revoke_arrived(struct proc *p, struct comm *c, uint32_t context, uint32_t from);
void ft_revoke_apply_early(struct ft *ft, struct comm *c);
void ft_revoke_resend_after_death(struct proc *p, uint32_t number);

#endif
