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

/* Operations that derive groups from groups or compare groups. Time is linear in the group sizes, or n log n
 * if one group must be searched for members of another. */

/* A list of members for a new group whose size is not known yet. */
struct gathering {
    uint32_t *table;
    int size;
};

static int gathering_open(struct gathering *s, size_t capacity)
{
    s->size = 0;
    s->table = malloc((capacity + 1) * sizeof(*s->table));
    return s->table ? MPI_SUCCESS
                    : err_set(MPI_ERR_NO_MEM, "out of memory for a group of %zu processes", capacity);
}

static void gathering_add(struct gathering *s, uint32_t job_rank)
{
    s->table[s->size++] = job_rank;
}

static int gathering_finish(struct gathering *s, uint32_t me, struct group **out)
{
    int rc = group_from_table(me, s->table, s->size, out);
    free(s->table);
    return rc;
}

int group_compare(const struct group *a, const struct group *b, int *result)
{
    if (a->size != b->size) {
        *result = MPI_UNEQUAL;
        return MPI_SUCCESS;
    }
    int i = 0;
    while (i < a->size && group_job_rank(a, i) == group_job_rank(b, i))
        i++;
    if (i == a->size) {
        *result = MPI_IDENT;
        return MPI_SUCCESS;
    }
    struct group_index index;
    int rc = group_index_open(&index, a);
    if (rc)
        return rc;
    while (i < b->size && group_index_find(&index, group_job_rank(b, i)) != MPI_UNDEFINED)
        i++;
    group_index_close(&index);
    *result = i == b->size ? MPI_SIMILAR : MPI_UNEQUAL;
    return MPI_SUCCESS;
}

int group_translate(const struct group *from, int n, const int *ranks, const struct group *to, int *out)
{
    for (int i = 0; i < n; i++)
        if (ranks[i] != MPI_PROC_NULL && (ranks[i] < 0 || ranks[i] >= from->size))
            return err_set(MPI_ERR_RANK, "rank %d is not in the group, which has %d processes", ranks[i],
                           from->size);
    if (n == 1) { /* a linear search is faster than building an index */
        out[0] = ranks[0] == MPI_PROC_NULL ? MPI_PROC_NULL : group_find(to, group_job_rank(from, ranks[0]));
        return MPI_SUCCESS;
    }
    struct group_index index;
    int rc = group_index_open(&index, to);
    if (rc)
        return rc;
    for (int i = 0; i < n; i++)
        out[i] = ranks[i] == MPI_PROC_NULL ? MPI_PROC_NULL
                                           : group_index_find(&index, group_job_rank(from, ranks[i]));
    group_index_close(&index);
    return MPI_SUCCESS;
}

/* Adds the members of g that are in `other` (in_other) or that are not in `other`. */
static int gathering_filter(struct gathering *s, const struct group *g, const struct group *other,
                            bool in_other)
{
    struct group_index index;
    int rc = group_index_open(&index, other);
    if (rc)
        return rc;
    for (int i = 0; i < g->size; i++) {
        uint32_t job_rank = group_job_rank(g, i);
        if ((group_index_find(&index, job_rank) != MPI_UNDEFINED) == in_other)
            gathering_add(s, job_rank);
    }
    group_index_close(&index);
    return MPI_SUCCESS;
}

static int group_filter(uint32_t me, const struct group *g, const struct group *other, bool in_other,
                        struct group **out)
{
    struct gathering s;
    int rc = gathering_open(&s, (size_t)g->size);
    if (rc)
        return rc;
    rc = gathering_filter(&s, g, other, in_other);
    if (rc) {
        free(s.table);
        return rc;
    }
    return gathering_finish(&s, me, out);
}

int group_union(uint32_t me, struct group *a, struct group *b, struct group **out)
{
    struct gathering s;
    int rc = gathering_open(&s, (size_t)a->size + (size_t)b->size);
    if (rc)
        return rc;
    for (int i = 0; i < a->size; i++)
        gathering_add(&s, group_job_rank(a, i));
    rc = gathering_filter(&s, b, a, false);
    if (rc) {
        free(s.table);
        return rc;
    }
    return gathering_finish(&s, me, out);
}

int group_intersection(uint32_t me, struct group *a, struct group *b, struct group **out)
{
    return group_filter(me, a, b, true, out);
}

int group_difference(uint32_t me, struct group *a, struct group *b, struct group **out)
{
    return group_filter(me, a, b, false, out);
}

/* Marks a rank as listed by the user; a rank may be listed only once. */
static int group_mark_rank(bool *named, const struct group *g, int rank)
{
    if (rank < 0 || rank >= g->size)
        return err_set(MPI_ERR_RANK, "rank %d is not in the group, which has %d processes", rank, g->size);
    if (named[rank])
        return err_set(MPI_ERR_RANK, "rank %d is named twice", rank);
    named[rank] = true;
    return MPI_SUCCESS;
}

static int group_exclude_named(uint32_t me, const struct group *g, const bool *named, struct group **out)
{
    struct gathering s;
    int rc = gathering_open(&s, (size_t)g->size);
    if (rc)
        return rc;
    for (int i = 0; i < g->size; i++)
        if (!named[i])
            gathering_add(&s, group_job_rank(g, i));
    return gathering_finish(&s, me, out);
}

static int group_include_ranks(uint32_t me, const struct group *g, int n, const int *ranks,
                               struct group **out)
{
    struct gathering s;
    int rc = gathering_open(&s, (size_t)n);
    if (rc)
        return rc;
    for (int i = 0; i < n; i++)
        gathering_add(&s, group_job_rank(g, ranks[i]));
    return gathering_finish(&s, me, out);
}

/* Checks the list of ranks and creates the group of these ranks (include), or of all other ranks. */
static int make_from_rank_list(uint32_t me, struct group *g, int n, const int *ranks, bool include,
                               struct group **out)
{
    bool *named = calloc((size_t)g->size + 1, sizeof(*named));
    if (!named)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a group of %d processes", g->size);
    int rc = MPI_SUCCESS;
    for (int i = 0; i < n && !rc; i++)
        rc = group_mark_rank(named, g, ranks[i]);
    if (!rc)
        rc = include ? group_include_ranks(me, g, n, ranks, out) : group_exclude_named(me, g, named, out);
    free(named);
    return rc;
}

int group_incl(uint32_t me, struct group *g, int n, const int *ranks, struct group **out)
{
    return make_from_rank_list(me, g, n, ranks, true, out);
}

int group_excl(uint32_t me, struct group *g, int n, const int *ranks, struct group **out)
{
    return make_from_rank_list(me, g, n, ranks, false, out);
}

static int range_check(const struct group *g, const int range[3], int *count)
{
    int64_t first = range[0], last = range[1], stride = range[2];
    if (stride == 0)
        return err_set(MPI_ERR_ARG, "a range (%d, %d, 0) has no stride", range[0], range[1]);
    if ((last - first) / stride < 0 || (last != first && (last > first) != (stride > 0)))
        return err_set(MPI_ERR_ARG, "the range (%d, %d, %d) leads away from its end", range[0], range[1],
                       range[2]);
    if (first < 0 || first >= g->size || last < 0)
        return err_set(MPI_ERR_RANK, "the range (%d, %d, %d) leaves the group, which has %d processes",
                       range[0], range[1], range[2], g->size);
    int64_t steps = (last - first) / stride;
    if (first + steps * stride >= g->size)
        return err_set(MPI_ERR_RANK, "the range (%d, %d, %d) leaves the group, which has %d processes",
                       range[0], range[1], range[2], g->size);
    *count = (int)steps + 1;
    return MPI_SUCCESS;
}

static int make_from_ranges(uint32_t me, struct group *g, int n, int ranges[][3], bool include,
                            struct group **out)
{
    int *ranks = malloc(((size_t)g->size + 1) * sizeof(*ranks));
    if (!ranks)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a group of %d processes", g->size);
    int total = 0, rc = MPI_SUCCESS;
    for (int i = 0; i < n && !rc; i++) {
        int count = 0;
        rc = range_check(g, ranges[i], &count);
        if (!rc && count > g->size - total) /* more ranks than members: some rank is listed twice */
            rc = err_set(MPI_ERR_RANK, "the ranges name a rank twice");
        for (int k = 0; k < count && !rc; k++)
            ranks[total++] = ranges[i][0] + k * ranges[i][2];
    }
    if (!rc)
        rc = make_from_rank_list(me, g, total, ranks, include, out);
    free(ranks);
    return rc;
}

int group_range_incl(uint32_t me, struct group *g, int n, int ranges[][3], struct group **out)
{
    return make_from_ranges(me, g, n, ranges, true, out);
}

int group_range_excl(uint32_t me, struct group *g, int n, int ranges[][3], struct group **out)
{
    return make_from_ranges(me, g, n, ranges, false, out);
}
