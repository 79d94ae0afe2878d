/* ft.h: what processes do together after a fault: revoke a communicator, agree on a value although members
 * die, and create a new communicator of the living members. Processes die only in jobs that continue without
 * them (mpiexec -enable-recovery); in other jobs the same calls work, among processes that are all alive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_FT_FT_H
#define FP_FT_FT_H

#include "obj/comm.h"
#include "p2p/request.h"

/* Called after the predefined communicators exist. */
int ft_open(struct proc *p);

/* Notifies all members; each notified member notifies others, so that all living members are reached although
 * some die. */
void ft_revoke(struct comm *c);

/* *flag becomes the AND of all members' flags. Returns MPIX_ERR_PROC_FAILED at all of them if a member has
 * died that not all have acknowledged; *flag is agreed on nevertheless. */
int ft_agree(struct comm *c, int *flag);
int ft_agree_start(struct comm *c, int *flag, struct request **out);

/* Starts a communicator of the living members; *made is set when the request completes. */
int ft_shrink(struct comm *c, struct comm **made);
int ft_shrink_start(struct comm *c, MPI_Comm *made, struct request **out);

#endif
