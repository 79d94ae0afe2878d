/* group.h: an ordered set of processes, by job rank. Dense ranges need no table.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_GROUP_H
#define FP_OBJ_GROUP_H

#include <stdint.h>

#include "base/objmem.h"

struct session;

struct group {
    struct object obj; /* MAGIC_GROUP; first */
    int size;
    int rank;                /* rank of the calling process, or MPI_UNDEFINED */
    uint32_t first;          /* job rank of member 0 when table is NULL: members are first, first+1, ... */
    uint32_t *table;         /* job rank of each member */
    uint32_t handle;         /* handle value of MPI_GROUP_EMPTY, else 0 */
    struct session *session; /* session whose process set the group is derived from, else NULL */
};

static inline uint32_t group_job_rank(const struct group *g, int rank)
{
    return g->table ? g->table[rank] : g->first + (uint32_t)rank;
}

/* The constructors need `me`, the job rank of the calling process. The caller owns the result. */
int group_from_range(uint32_t me, uint32_t first, int size, struct group **out);
/* Makes a group from a table, which is copied unless it is a dense range. */
int group_from_table(uint32_t me, const uint32_t *table, int size, struct group **out);
struct group *group_retain(struct group *g);
void group_release(struct group *g); /* NULL is allowed */

/* The rank of a process in the group, or MPI_UNDEFINED. Linear time unless the group is dense. */
int group_find(const struct group *g, uint32_t job_rank);

/* A sorted index for many lookups in one group by binary search. */
struct group_index {
    const struct group *group;
    uint64_t *sorted; /* job rank << 32 | rank in the group, ascending; NULL: a dense group */
};
int group_index_open(struct group_index *x, const struct group *g);
int group_index_find(const struct group_index *x, uint32_t job_rank);
void group_index_close(struct group_index *x);

int group_compare(const struct group *a, const struct group *b, int *result);
int group_translate(const struct group *from, int n, const int *ranks, const struct group *to, int *out);
int group_union(uint32_t me, struct group *a, struct group *b, struct group **out);
int group_intersection(uint32_t me, struct group *a, struct group *b, struct group **out);
int group_difference(uint32_t me, struct group *a, struct group *b, struct group **out);
int group_incl(uint32_t me, struct group *g, int n, const int *ranks, struct group **out);
int group_excl(uint32_t me, struct group *g, int n, const int *ranks, struct group **out);
int group_range_incl(uint32_t me, struct group *g, int n, int ranges[][3], struct group **out);
int group_range_excl(uint32_t me, struct group *g, int n, int ranges[][3], struct group **out);

#endif
