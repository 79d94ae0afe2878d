/* group.h: an ordered set of processes, by job rank. Dense ranges take no table.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_GROUP_H
#define FP_OBJ_GROUP_H

#include <stdint.h>

#include "base/object.h"

struct group {
    struct object obj; /* MAGIC_GROUP; first */
    int size;
    int rank;          /* mine, or MPI_UNDEFINED */
    uint32_t first;    /* job rank of member 0 when table is NULL: members are first, first+1, ... */
    uint32_t *table;   /* job rank of each member */
    uint32_t handle;   /* predefined value (MPI_GROUP_EMPTY), or 0 */
};

static inline uint32_t group_job_rank(const struct group *g, int rank)
{
    return g->table ? g->table[rank] : g->first + (uint32_t)rank;
}

#endif
