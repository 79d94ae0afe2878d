/* ft.h: collective operations after a fault: revoke a communicator, agree on a value although members die,
 * and create a new communicator of the living members. Only jobs with mpiexec -enable-recovery continue after
 * a death; in other jobs the same calls work while all processes are alive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_FT_FT_H
#define FP_FT_FT_H

#include "obj/comm.h"
#include "p2p/request.h"

/* Opens fault tolerance. Called after the predefined communicators have been created. */
int ft_open(struct proc *p);

/* Revokes a communicator and notifies its members; each notified member notifies others, so that all
 * living members are reached although some die. */
void ft_revoke(struct comm *c);

/* Sets *flag to the AND of all members' flags. Returns MPIX_ERR_PROC_FAILED at all members if a member has
 * died whose death not all members have acknowledged; *flag is valid also then. */
int ft_agree(struct comm *c, int *flag);
int ft_agree_start(struct comm *c, int *flag, struct request **out);

/* Create a communicator of the living members. ft_shrink_start() sets *made when the request completes. */
int ft_shrink(struct comm *c, struct comm **made);
int ft_shrink_start(struct comm *c, MPI_Comm *made, struct request **out);

#endif
