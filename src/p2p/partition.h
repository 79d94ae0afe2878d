/* partition.h: how a partitioned message is cut into transfers. A transfer is one or more whole partitions of
 * the sender, so that it can be sent when they are ready. Small neighbouring partitions are sent together,
 * but only inside one partition of the receiver: the receiver could not see them arrive one by one anyway, so
 * it never waits for a partition that the program marks ready later.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_PARTITION_H
#define FP_P2P_PARTITION_H

#include <stdint.h>

/* The partitioning of the message on one side. */
struct partition_side {
    int partitions;
    uint64_t bytes; /* bytes of a partition */
};

struct partition_plan {
    int transfers;
    /* transfer i is the sender's partitions first[i] .. first[i + 1] - 1; transfers + 1 entries */
    int *first;
};

/* Computes the transfers. Both sides pass the same arguments and get the same plan. `together`: most bytes of
 * a transfer of several partitions. 0 or MPI_ERR_NO_MEM. */
int partition_plan_make(struct partition_side sender, struct partition_side receiver, uint64_t together,
                        struct partition_plan *out);
void partition_plan_free(struct partition_plan *plan);

/* The transfer that a partition of the sender belongs to. */
int partition_find_transfer(const struct partition_plan *plan, int partition);

/* The partitions of the receiver that the bytes [from, to) belong to: *first .. *last - 1. All of them if the
 * message is empty. */
void partition_find_touched(struct partition_side receiver, uint64_t from, uint64_t to, int *first,
                            int *last);

#endif
