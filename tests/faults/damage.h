/* damage.h: the faults that one rank of the fault matrix causes in itself, in the launcher or in the network.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULTS_DAMAGE_H
#define FAULTS_DAMAGE_H

/* Return the rank that causes the damage, and the round, from the environment. */
int damage_rank(void);
int damage_round(void);

/* Causes the damage of FAULTS_WHAT; returns unless that ends this process. */
void damage_cause_now(void);

/* In the selected rank, causes the damage from a thread after FAULTS_DELAY microseconds, while MPI_Init or
 * MPI_Finalize runs. The rank number is the launcher's PMI_RANK. */
void damage_cause_later(void);

#endif
