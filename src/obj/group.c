/* group.c: creates groups and finds processes in them. The most common group, a dense range of job ranks,
 * needs no table and is searched in constant time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/group.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static bool table_is_dense(const uint32_t *table, int size)
{
    for (int i = 1; i < size; i++)
        if (table[i] != table[0] + (uint32_t)i)
            return false;
    return true;
}

static int group_alloc(int size, struct group **out)
{
    struct group *g = objmem_new(sizeof(*g));
    if (!g)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a group");
    g->obj = object_init(MAGIC_GROUP);
    g->size = size;
    *out = g;
    return MPI_SUCCESS;
}

int group_from_range(uint32_t me, uint32_t first, int size, struct group **out)
{
    struct group *g;
    int rc = group_alloc(size, &g);
    if (rc)
        return rc;
    g->first = first;
    g->rank = group_find(g, me);
    *out = g;
    return MPI_SUCCESS;
}

int group_from_table(uint32_t me, const uint32_t *table, int size, struct group **out)
{
    if (table_is_dense(table, size))
        return group_from_range(me, size ? table[0] : 0, size, out);
    struct group *g;
    int rc = group_alloc(size, &g);
    if (rc)
        return rc;
    g->table = malloc((size_t)size * sizeof(*table));
    if (!g->table) {
        objmem_free(g);
        return err_set(MPI_ERR_NO_MEM, "out of memory for a group of %d processes", size);
    }
    memcpy(g->table, table, (size_t)size * sizeof(*table));
    g->rank = group_find(g, me);
    *out = g;
    return MPI_SUCCESS;
}

struct group *group_retain(struct group *g)
{
    g->obj.refs++;
    return g;
}

void group_release(struct group *g)
{
    if (!g || --g->obj.refs > 0)
        return;
    g->obj.magic = MAGIC_FREED;
    free(g->table);
    objmem_free(g);
}

static int find_in_dense_range(const struct group *g, uint32_t job_rank)
{
    uint32_t place = job_rank - g->first;
    return job_rank >= g->first && place < (uint32_t)g->size ? (int)place : MPI_UNDEFINED;
}

int group_find(const struct group *g, uint32_t job_rank)
{
    if (!g->table)
        return find_in_dense_range(g, job_rank);
    for (int i = 0; i < g->size; i++)
        if (g->table[i] == job_rank)
            return i;
    return MPI_UNDEFINED;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int group_index_open(struct group_index *x, const struct group *g)
{
    *x = (struct group_index){.group = g};
    if (!g->table)
        return MPI_SUCCESS;
    x->sorted = malloc((size_t)g->size * sizeof(*x->sorted));
    if (!x->sorted)
        return err_set(MPI_ERR_NO_MEM, "out of memory: cannot search a group of %d processes", g->size);
    for (int i = 0; i < g->size; i++)
        x->sorted[i] = (uint64_t)g->table[i] << 32 | (uint32_t)i;
    qsort(x->sorted, (size_t)g->size, sizeof(*x->sorted), compare_u64);
    return MPI_SUCCESS;
}

int group_index_find(const struct group_index *x, uint32_t job_rank)
{
    if (!x->sorted)
        return find_in_dense_range(x->group, job_rank);
    int low = 0, high = x->group->size;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (x->sorted[middle] >> 32 < job_rank)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < x->group->size && x->sorted[low] >> 32 == job_rank;
    return found ? (int)(uint32_t)x->sorted[low] : MPI_UNDEFINED;
}

void group_index_close(struct group_index *x)
{
    free(x->sorted);
    x->sorted = NULL;
}
