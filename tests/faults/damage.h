/* damage.h: what one rank of the fault matrix does to itself, to the launcher or to the network.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULTS_DAMAGE_H
#define FAULTS_DAMAGE_H

/* Who does it and in which round, as the environment says. */
int damage_rank(void);
int damage_round(void);

/* Does what FAULTS_WHAT says; returns unless this process is what breaks. */
void damage_now(void);

/* The same from a thread after FAULTS_DELAY microseconds, in the rank that is to do it: while MPI_Init or
 * MPI_Finalize run. The rank is known from the launcher's PMI_RANK. */
void damage_soon(void);

#endif
