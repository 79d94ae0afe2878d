/* damage.h: what one rank of the fault matrix does to itself, to the launcher or to the network.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULTS_DAMAGE_H
#define FAULTS_DAMAGE_H

/* The rank that causes the damage, and the round, from the environment. */
int damage_rank(void);
int damage_round(void);

/* Causes the damage of FAULTS_WHAT; returns unless that ends this process. */
void damage_now(void);

/* The same from a thread after FAULTS_DELAY microseconds, in the chosen rank: while MPI_Init or MPI_Finalize run. The
 * rank is taken from the launcher's PMI_RANK. */
void damage_soon(void);

#endif
