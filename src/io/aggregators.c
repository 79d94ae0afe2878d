/* aggregators.c: chooses the ranks that aggregate, and decides whether aggregators perform an access.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/aggregators.h"

#include <stdlib.h>

#include "boot/boot.h"
#include "io/same_call.h"
#include "obj/group.h"

/* Default number of aggregators of a node: one saturates a disk, two saturate the page cache. */
#define PER_NODE 2
/* Bytes of a piece from which access by each rank is faster. An aggregator saves system calls and costs a
 * copy and a message; the limit is the number of bytes that are copied in the time of a system call. Both
 * depend on the speed of the processor, so their ratio differs little between machines. A read from the
 * page cache takes 0.2 to 0.5 us, like a copy of 2 KiB; so does a write to tmpfs. A write to a disk's file
 * system takes 1.5 to 3 us, for its journal and its tables, and ranks that write one file compete for its
 * lock; a call to a network file system takes much more. Measured speed with aggregators relative to that
 * without: ext4, pieces of 16 KiB 0.9 to 1.1, of 64 KiB 0.6 to 0.8; tmpfs with two to eight ranks, pieces
 * of 1 KiB 1.4, of 2560 bytes 0.8. The hints romio_cb_write and romio_cb_read override the limit. */
#define PIECE_WORTH_ALONE       (32 << 10)
#define PIECE_WORTH_ALONE_LOCAL (2 << 10)
/* Limit of rounds for sparse data if the user requests aggregators. */
#define WINDOWS_MAX (1 << 20)

/* Returns the node number of each rank, and the number of nodes in *count. The ranks of other jobs count as one
 * more node, since they share no memory with this job. */
static int *find_nodes(const struct file *f, int *count)
{
    const struct comm *c = f->comm;
    const struct boot *boot = c->proc->boot;
    int *node = calloc((size_t)c->size, sizeof(*node));
    int *number = malloc(((size_t)boot->nnodes + 1) * sizeof(*number));
    *count = 0;
    if (!node || !number) {
        free(node);
        free(number);
        return NULL;
    }
    for (uint32_t i = 0; i <= boot->nnodes; i++)
        number[i] = -1;
    for (int r = 0; r < c->size; r++) {
        const uint32_t job_rank = group_job_rank(c->group, r);
        const uint32_t at = job_rank < boot->size ? boot->node_of[job_rank] : boot->nnodes;
        if (number[at] < 0)
            number[at] = (*count)++;
        node[r] = number[at];
    }
    free(number);
    return node;
}

/* Picks aggregators node by node in turn, so that every prefix of the list covers as many nodes as
 * possible. */
static int pick_aggregators(const int *node, int ranks, int nodes, int wanted, int per_node, int *out)
{
    int n = 0;
    for (int turn = 0; turn < per_node && n < wanted; turn++) {
        const int before = n;
        for (int at = 0; at < nodes && n < wanted; at++) {
            int seen = 0;
            for (int r = 0; r < ranks; r++) {
                if (node[r] == at && seen++ == turn) {
                    out[n++] = r;
                    break;
                }
            }
        }
        if (n == before)
            break;
    }
    return n;
}

/* Reduces the number of aggregators so that it divides the number of stripes or is a multiple of it: then
 * each server of the file system receives requests from as few aggregators as possible. */
static int64_t align_to_stripes(int64_t stripes, int64_t most)
{
    if (most >= stripes)
        return most / stripes * stripes;
    while (stripes % most != 0)
        most--;
    return most;
}

int aggregators_choose(struct file *f)
{
    const int ranks = f->comm->size;
    int *node = find_nodes(f, &f->nnodes);
    f->aggregators = malloc((size_t)ranks * sizeof(*f->aggregators));
    if (!node || !f->aggregators) {
        free(node);
        return err_set(MPI_ERR_NO_MEM, "%s: out of memory for the ranges of %d ranks", f->name, ranks);
    }
    const int64_t per_node = f->hints.cb_per_node ? f->hints.cb_per_node
                             : f->hints.cb_nodes  ? ranks
                                                  : PER_NODE;
    const int64_t most = MIN((int64_t)f->nnodes * per_node, ranks);
    const int64_t wanted = f->hints.cb_nodes          ? f->hints.cb_nodes
                           : f->hints.striping_factor ? align_to_stripes(f->hints.striping_factor, most)
                                                      : ranks;
    f->naggregators = pick_aggregators(node, ranks, f->nnodes, (int)MIN(wanted, ranks),
                                       (int)MIN(per_node, ranks), f->aggregators);
    free(node);
    return 0;
}

int aggregators_broadcast(struct file *f)
{
    int counts[2] = {f->nnodes, f->naggregators};
    const int rc = agree_bcast(f->comm, counts, sizeof(counts));
    f->nnodes = counts[0];
    f->naggregators = counts[1];
    return rc ? rc : agree_bcast(f->comm, f->aggregators, (size_t)counts[1] * sizeof(*f->aggregators));
}

bool aggregators_are_faster(const struct file *f, bool write, const int64_t *records)
{
    const enum io_choice choice = write ? f->hints.cb_write : f->hints.cb_read;
    const bool local = write ? f->in_memory : f->near;
    const int64_t alone = local ? PIECE_WORTH_ALONE_LOCAL : PIECE_WORTH_ALONE;
    const int ranks = f->comm->size;
    int64_t bytes = 0, pieces = 0, reached = INT64_MIN, from = INT64_MAX;
    bool interleaved = false;
    for (int r = 0; r < ranks; r++) {
        const int64_t *record = records + (size_t)r * RECORD_SIZE;
        if (record[RECORD_LENGTH] == 0)
            continue;
        if (record[RECORD_PIECES] == RECORD_UNSORTED)
            return false;
        interleaved = interleaved || record[RECORD_FROM] < reached;
        from = MIN(from, record[RECORD_FROM]);
        reached = MAX(reached, record[RECORD_TO]);
        bytes += record[RECORD_LENGTH];
        pieces += record[RECORD_PIECES];
    }
    /* Avoids overflow when domains are rounded up. */
    if (bytes == 0 || choice == IO_DISABLE || reached > INT64_MAX / 2)
        return false;
    const int64_t windows = (reached - from) / f->hints.cb_buffer_size;
    if (windows > pieces && (choice == IO_AUTOMATIC || windows > WINDOWS_MAX)) /* most would be empty */
        return false;
    return choice == IO_ENABLE || (interleaved && bytes / pieces < alone);
}
