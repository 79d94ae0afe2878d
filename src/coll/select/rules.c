/* rules.c: the selection table. For each kind the first rule that applies and whose algorithm fits is used;
 * the last one must fit every call. The limits were measured on one node. Rules for larger numbers of ranks
 * come from the simulator (256 to 10,000 nodes, lab/docs/simulator.md): each is marked "simulated".
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "coll/select/select.h"

#define K 1024u

static const struct coll_rule rules[] = {
    {.kind = COLL_BARRIER, .algorithm = "shared"},
    {.kind = COLL_BARRIER, .algorithm = "rdma"},
    {.kind = COLL_BARRIER, .algorithm = "nway", .min_size = 64}, /* simulated */
    {.kind = COLL_BARRIER, .algorithm = "dissemination"},
    {.kind = COLL_BARRIER, .algorithm = "inter"},

    {.kind = COLL_BCAST, .algorithm = "shared", .max_bytes = 512 * K},
    {.kind = COLL_BCAST, .algorithm = "shared", .max_size = 16},
    {.kind = COLL_BCAST, .algorithm = "binomial", .max_bytes = 64 * K},
    {.kind = COLL_BCAST, .algorithm = "binomial", .max_size = 4},
    /* Simulated: rings and chains have as many steps as ranks. */
    {.kind = COLL_BCAST, .algorithm = "binomial", .max_bytes = 512 * K, .min_size = 1024},
    {.kind = COLL_BCAST, .algorithm = "binomial", .max_bytes = 8192 * K, .min_size = 8192},
    {.kind = COLL_BCAST, .algorithm = "scatter_ring", .min_size = 128},
    {.kind = COLL_BCAST, .algorithm = "scatter_ring", .max_bytes = 2048 * K},
    {.kind = COLL_BCAST, .algorithm = "chain", .segment = 128 * K},
    {.kind = COLL_BCAST, .algorithm = "inter"},

    {.kind = COLL_GATHER, .algorithm = "shared", .max_size = 16},
    {.kind = COLL_GATHER, .algorithm = "binomial", .max_bytes = 2 * K, .min_size = 5},
    {.kind = COLL_GATHER, .algorithm = "linear", .window = 64},
    {.kind = COLL_GATHER, .algorithm = "inter"},

    {.kind = COLL_SCATTER, .algorithm = "shared", .max_size = 16},
    {.kind = COLL_SCATTER, .algorithm = "binomial", .max_bytes = 2 * K, .min_size = 5},
    {.kind = COLL_SCATTER, .algorithm = "linear", .window = 64},
    {.kind = COLL_SCATTER, .algorithm = "inter"},

    {.kind = COLL_ALLGATHER, .algorithm = "shared", .max_size = 16},
    {.kind = COLL_ALLGATHER, .algorithm = "shared", .max_bytes = 8 * K},
    {.kind = COLL_ALLGATHER, .algorithm = "recursive_doubling", .max_bytes = 16 * K},
    {.kind = COLL_ALLGATHER, .algorithm = "bruck", .max_bytes = 4 * K},
    {.kind = COLL_ALLGATHER, .algorithm = "neighbor_exchange", .max_bytes = 128 * K, .min_size = 4},
    {.kind = COLL_ALLGATHER, .algorithm = "ring"},
    {.kind = COLL_ALLGATHER, .algorithm = "inter"},

    {.kind = COLL_ALLTOALL, .algorithm = "shared", .max_size = 16},
    {.kind = COLL_ALLTOALL, .algorithm = "bruck", .max_bytes = 256, .min_size = 8},
    {.kind = COLL_ALLTOALL, .algorithm = "linear", .max_bytes = 32 * K, .window = 32},
    {.kind = COLL_ALLTOALL, .algorithm = "pairwise", .min_bytes = 32 * K + 1},
    {.kind = COLL_ALLTOALL, .algorithm = "linear", .window = 32},
    {.kind = COLL_ALLTOALL, .algorithm = "inter"},

    {.kind = COLL_REDUCE, .algorithm = "shared", .max_size = 16},
    {.kind = COLL_REDUCE, .algorithm = "shared", .max_bytes = 64 * K},
    {.kind = COLL_REDUCE, .algorithm = "binomial", .max_bytes = 32 * K},
    {.kind = COLL_REDUCE, .algorithm = "rabenseifner", .min_size = 4, .max_bytes = 8192 * K},
    {.kind = COLL_REDUCE, .algorithm = "rabenseifner", .min_size = 128}, /* simulated */
    {.kind = COLL_REDUCE, .algorithm = "chain", .min_size = 3, .segment = 128 * K},
    {.kind = COLL_REDUCE, .algorithm = "binomial"},
    {.kind = COLL_REDUCE, .algorithm = "inter"},

    {.kind = COLL_ALLREDUCE, .algorithm = "shared", .max_size = 16},
    {.kind = COLL_ALLREDUCE, .algorithm = "shared", .max_bytes = 64 * K},
    {.kind = COLL_ALLREDUCE, .algorithm = "recursive_doubling", .max_bytes = 16 * K},
    {.kind = COLL_ALLREDUCE, .algorithm = "rabenseifner", .max_bytes = 1024 * K},
    {.kind = COLL_ALLREDUCE, .algorithm = "rabenseifner", .min_size = 128}, /* simulated */
    {.kind = COLL_ALLREDUCE, .algorithm = "ring", .min_size = 3},
    {.kind = COLL_ALLREDUCE, .algorithm = "rabenseifner"},
    {.kind = COLL_ALLREDUCE, .algorithm = "inter"},

    {.kind = COLL_REDUCE_SCATTER, .algorithm = "shared", .max_size = 16},
    {.kind = COLL_REDUCE_SCATTER, .algorithm = "recursive_halving", .max_bytes = 256 * K},
    {.kind = COLL_REDUCE_SCATTER, .algorithm = "pairwise"},
    {.kind = COLL_REDUCE_SCATTER, .algorithm = "linear"},
    {.kind = COLL_REDUCE_SCATTER, .algorithm = "inter"},

    {.kind = COLL_SCAN, .algorithm = "recursive_doubling", .max_bytes = 64 * K},
    {.kind = COLL_SCAN, .algorithm = "recursive_doubling", .min_size = 64}, /* simulated */
    {.kind = COLL_SCAN, .algorithm = "linear"},
    {.kind = COLL_EXSCAN, .algorithm = "recursive_doubling", .max_bytes = 64 * K},
    {.kind = COLL_EXSCAN, .algorithm = "recursive_doubling", .min_size = 64}, /* simulated */
    {.kind = COLL_EXSCAN, .algorithm = "linear"},

    {.kind = COLL_NEIGHBOR_ALLGATHER, .algorithm = "linear"},
    {.kind = COLL_NEIGHBOR_ALLTOALL, .algorithm = "linear"},
};

size_t coll_rules_count(void)
{
    return COUNT_OF(rules);
}

const struct coll_rule *coll_rules_get(size_t index)
{
    return &rules[index];
}
