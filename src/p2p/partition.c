/* partition.c: how a partitioned message is cut into transfers: pure arithmetic. See partition.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/partition.h"

#include <stdlib.h>

#include "base/err.h"

/* The end of the receiver's partition that contains this byte. */
static uint64_t receiver_partition_end(struct partition_side receiver, uint64_t byte)
{
    return receiver.bytes ? (byte / receiver.bytes + 1) * receiver.bytes : UINT64_MAX;
}

int partition_plan_make(struct partition_side sender, struct partition_side receiver, uint64_t together,
                        struct partition_plan *out)
{
    int *first = malloc(((size_t)sender.partitions + 1) * sizeof(*first));
    if (!first)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %d partitions", sender.partitions);
    int n = 0, next = 0;
    while (next < sender.partitions) {
        uint64_t begin = (uint64_t)next * sender.bytes;
        uint64_t limit = MIN(begin + together, receiver_partition_end(receiver, begin));
        first[n++] = next++;
        while (next < sender.partitions && (uint64_t)(next + 1) * sender.bytes <= limit)
            next++;
    }
    first[n] = next;
    *out = (struct partition_plan){.transfers = n, .first = first};
    return 0;
}

void partition_plan_free(struct partition_plan *plan)
{
    free(plan->first);
    *plan = (struct partition_plan){0};
}

int partition_find_transfer(const struct partition_plan *plan, int partition)
{
    int low = 0, high = plan->transfers - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (plan->first[middle] <= partition)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

void partition_find_touched(struct partition_side receiver, uint64_t from, uint64_t to, int *first, int *last)
{
    *first = 0;
    *last = receiver.partitions;
    if (receiver.bytes == 0 || from == to)
        return;
    *first = (int)(from / receiver.bytes);
    *last = (int)((to - 1) / receiver.bytes) + 1;
}
