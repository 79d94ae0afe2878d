/* test_group.c: compares every group operation with a simple model of quadratic cost, on random groups,
 * dense and sparse.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdlib.h>

#include "obj/group.h"
#include "test.h"

enum { JOB = 40, ME = 7 };

static unsigned seed = 1;

static int random_below(int n)
{
    seed = seed * 1103515245u + 12345u;
    return (int)(seed >> 8) % n;
}

static struct group *random_group(void)
{
    uint32_t all[JOB];
    struct group *g = NULL;
    int size = random_below(JOB + 1);
    if (random_below(3) == 0) {
        EXPECT_EQ(group_from_range(ME, (uint32_t)random_below(JOB - size + 1), size, &g), MPI_SUCCESS);
        return g;
    }
    for (uint32_t i = 0; i < JOB; i++)
        all[i] = i;
    for (int i = JOB - 1; i > 0; i--) {
        int k = random_below(i + 1);
        uint32_t t = all[i];
        all[i] = all[k];
        all[k] = t;
    }
    EXPECT_EQ(group_from_table(ME, all, size, &g), MPI_SUCCESS);
    return g;
}

static int model_find(const struct group *g, uint32_t job_rank)
{
    for (int i = 0; i < g->size; i++)
        if (group_job_rank(g, i) == job_rank)
            return i;
    return MPI_UNDEFINED;
}

static void expect_members(const struct group *g, const uint32_t *wanted, int n)
{
    EXPECT_EQ(g->size, n);
    for (int i = 0; i < n && i < g->size; i++)
        EXPECT_EQ(group_job_rank(g, i), wanted[i]);
    EXPECT_EQ(g->rank, model_find(g, ME));
}

static void test_dense_groups_have_no_table(void)
{
    uint32_t run[] = {5, 6, 7, 8};
    struct group *g;
    EXPECT_EQ(group_from_table(ME, run, 4, &g), MPI_SUCCESS);
    EXPECT(g->table == NULL);
    EXPECT_EQ(g->rank, 2);
    group_release(g);
}

static void test_set_operations(void)
{
    for (int round = 0; round < 2000; round++) {
        struct group *a = random_group(), *b = random_group(), *g;
        uint32_t wanted[2 * JOB];
        int n = 0;
        for (int i = 0; i < a->size; i++)
            wanted[n++] = group_job_rank(a, i);
        for (int i = 0; i < b->size; i++)
            if (model_find(a, group_job_rank(b, i)) == MPI_UNDEFINED)
                wanted[n++] = group_job_rank(b, i);
        EXPECT_EQ(group_union(ME, a, b, &g), MPI_SUCCESS);
        expect_members(g, wanted, n);
        group_release(g);
        for (int in = 0; in < 2; in++) {
            n = 0;
            for (int i = 0; i < a->size; i++)
                if ((model_find(b, group_job_rank(a, i)) != MPI_UNDEFINED) == in)
                    wanted[n++] = group_job_rank(a, i);
            EXPECT_EQ(in ? group_intersection(ME, a, b, &g) : group_difference(ME, a, b, &g), MPI_SUCCESS);
            expect_members(g, wanted, n);
            group_release(g);
        }
        group_release(a);
        group_release(b);
    }
}

static void test_compare_and_translate(void)
{
    for (int round = 0; round < 2000; round++) {
        struct group *a = random_group(), *b = random_group();
        int ranks[JOB + 1], out[JOB + 1], result, same = a->size == b->size, order = same;
        for (int i = 0; i < a->size; i++) {
            ranks[i] = i;
            same = same && model_find(b, group_job_rank(a, i)) != MPI_UNDEFINED;
            order = order && group_job_rank(a, i) == group_job_rank(b, i);
        }
        EXPECT_EQ(group_compare(a, b, &result), MPI_SUCCESS);
        EXPECT_EQ(result, order ? MPI_IDENT : same ? MPI_SIMILAR : MPI_UNEQUAL);
        ranks[a->size] = MPI_PROC_NULL;
        EXPECT_EQ(group_translate(a, a->size + 1, ranks, b, out), MPI_SUCCESS);
        for (int i = 0; i < a->size; i++)
            EXPECT_EQ(out[i], model_find(b, group_job_rank(a, i)));
        EXPECT_EQ(out[a->size], MPI_PROC_NULL);
        group_release(a);
        group_release(b);
    }
}

static void test_rank_lists(void)
{
    uint32_t table[] = {3, 1, 4, 15, 9, 2, 6, 7};
    struct group *g, *h;
    int some[] = {7, 0, 2}, twice[] = {1, 1}, beyond[] = {8};
    group_from_table(ME, table, 8, &g);
    EXPECT_EQ(group_incl(ME, g, 3, some, &h), MPI_SUCCESS);
    expect_members(h, (uint32_t[]){7, 3, 4}, 3);
    group_release(h);
    EXPECT_EQ(group_excl(ME, g, 3, some, &h), MPI_SUCCESS);
    expect_members(h, (uint32_t[]){1, 15, 9, 2, 6}, 5);
    group_release(h);
    EXPECT_EQ(group_incl(ME, g, 0, NULL, &h), MPI_SUCCESS);
    EXPECT_EQ(h->size, 0);
    group_release(h);
    EXPECT_EQ(group_incl(ME, g, 2, twice, &h), MPI_ERR_RANK);
    EXPECT_EQ(group_excl(ME, g, 1, beyond, &h), MPI_ERR_RANK);
    group_release(g);
}

static void test_ranges(void)
{
    struct group *g, *h;
    group_from_range(ME, 100, 10, &g);
    int up_down[][3] = {{0, 5, 2}, {9, 7, -1}}, odd_end[][3] = {{1, 8, 3}}, no_stride[][3] = {{1, 2, 0}};
    int away[][3] = {{5, 2, 1}}, outside[][3] = {{3, 12, 3}}, again[][3] = {{0, 3, 1}, {2, 2, 1}};
    EXPECT_EQ(group_range_incl(ME, g, 2, up_down, &h), MPI_SUCCESS);
    expect_members(h, (uint32_t[]){100, 102, 104, 109, 108, 107}, 6);
    group_release(h);
    EXPECT_EQ(group_range_incl(ME, g, 1, odd_end, &h), MPI_SUCCESS);
    expect_members(h, (uint32_t[]){101, 104, 107}, 3);
    group_release(h);
    EXPECT_EQ(group_range_excl(ME, g, 2, up_down, &h), MPI_SUCCESS);
    expect_members(h, (uint32_t[]){101, 103, 105, 106}, 4);
    group_release(h);
    EXPECT_EQ(group_range_incl(ME, g, 1, no_stride, &h), MPI_ERR_ARG);
    EXPECT_EQ(group_range_incl(ME, g, 1, away, &h), MPI_ERR_ARG);
    EXPECT_EQ(group_range_incl(ME, g, 1, outside, &h), MPI_ERR_RANK);
    EXPECT_EQ(group_range_excl(ME, g, 2, again, &h), MPI_ERR_RANK);
    group_release(g);
}

int main(void)
{
    TEST_RUN(test_dense_groups_have_no_table);
    TEST_RUN(test_set_operations);
    TEST_RUN(test_compare_and_translate);
    TEST_RUN(test_rank_lists);
    TEST_RUN(test_ranges);
    return test_result();
}
