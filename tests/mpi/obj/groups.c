/* groups.c: operations on groups: union, intersection, difference and ranges, with members in the order
 * that the standard requires, also with empty groups.
 *
 * ranks: 1 4 5
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static MPI_Group world;

/* Checks that the world ranks of the members are those of the list, in its order. */
static void expect_members(MPI_Group *group, int n, const int *list)
{
    int size, all[8], found[8];
    MPI_Group_size(*group, &size);
    EXPECT_EQ(size, n);
    for (int i = 0; i < size && i < 8; i++)
        all[i] = i;
    MPI_Group_translate_ranks(*group, size, all, world, found);
    for (int i = 0; i < size && i < n; i++)
        EXPECT_EQ(found[i], list[i]);
    if (n == 0)
        EXPECT(*group == MPI_GROUP_EMPTY);
    else
        MPI_Group_free(group);
}

static void test_algebra(void)
{
    MPI_Group a, b, g;
    MPI_Group_incl(world, 3, (int[]){3, 0, 1}, &a);
    MPI_Group_incl(world, 2, (int[]){2, 3}, &b);
    /* The union lists the first group, then the members of the second group that are not in the first. */
    MPI_Group_union(a, b, &g);
    expect_members(&g, 4, (int[]){3, 0, 1, 2});
    MPI_Group_union(b, a, &g);
    expect_members(&g, 4, (int[]){2, 3, 0, 1});
    MPI_Group_intersection(a, b, &g);
    expect_members(&g, 1, (int[]){3});
    MPI_Group_difference(a, b, &g);
    expect_members(&g, 2, (int[]){0, 1});
    MPI_Group_difference(a, a, &g);
    expect_members(&g, 0, NULL);
    MPI_Group_intersection(a, MPI_GROUP_EMPTY, &g);
    expect_members(&g, 0, NULL);
    MPI_Group_union(MPI_GROUP_EMPTY, b, &g);
    expect_members(&g, 2, (int[]){2, 3});
    MPI_Group_free(&a);
    MPI_Group_free(&b);
}

static void test_ranges(void)
{
    MPI_Group g;
    int forward[2][3] = {{0, 3, 2}, {3, 3, 1}}, backward[1][3] = {{2, 0, -1}}, none[1][3] = {{0, 0, 1}};
    MPI_Group_range_incl(world, 1, backward, &g);
    expect_members(&g, 3, (int[]){2, 1, 0});
    MPI_Group_range_excl(world, 2, forward, &g);
    if (mpitest_size == 4)
        expect_members(&g, 1, (int[]){1});
    else
        expect_members(&g, 2, (int[]){1, 4});
    MPI_Group_range_excl(world, 0, none, &g);
    expect_members(&g, mpitest_size, (int[]){0, 1, 2, 3, 4});
}

/* Tests MPI_Cart_map and MPI_Graph_map without reordering; ranks beyond the topology get MPI_UNDEFINED. */
static void test_maps(void)
{
    int dims[2] = {1, 1}, periods[2] = {0, 0}, ends[1] = {0}, place;
    MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &place);
    EXPECT_EQ(place, mpitest_rank == 0 ? 0 : MPI_UNDEFINED);
    MPI_Graph_map(MPI_COMM_WORLD, 1, ends, NULL, &place);
    EXPECT_EQ(place, mpitest_rank == 0 ? 0 : MPI_UNDEFINED);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (mpitest_size >= 4) {
        test_algebra();
        test_ranges();
    }
    test_maps();
    MPI_Group_free(&world);
    return mpitest_end();
}
