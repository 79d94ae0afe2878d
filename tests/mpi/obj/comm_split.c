/* comm_split.c: communicators created from parts of others: MPI_Comm_split, split_type, create, create_group.
 *
 * ranks: 1 2 3 4 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "mpitest.h"

static void expect_sum(MPI_Comm c, int wanted)
{
    int sum = -1;
    MPI_Allreduce(&mpitest_rank, &sum, 1, MPI_INT, MPI_SUM, c);
    EXPECT_EQ(sum, wanted);
}

static void test_split_by_parity(void)
{
    MPI_Comm c;
    int rank, size, wanted = 0, members = 0;
    for (int i = mpitest_rank % 2; i < mpitest_size; i += 2, members++)
        wanted += i;
    MPI_Comm_split(MPI_COMM_WORLD, mpitest_rank % 2, -mpitest_rank, &c);
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    EXPECT_EQ(size, members);
    EXPECT_EQ(rank, members - 1 - mpitest_rank / 2);
    expect_sum(c, wanted);
    MPI_Comm_free(&c);
}

static void test_equal_keys_and_undefined(void)
{
    MPI_Comm c;
    int rank, color = mpitest_rank == 0 ? MPI_UNDEFINED : 7;
    MPI_Comm_split(MPI_COMM_WORLD, color, 3, &c);
    EXPECT_EQ(c == MPI_COMM_NULL, mpitest_rank == 0);
    if (c == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(c, &rank);
    EXPECT_EQ(rank, mpitest_rank - 1);
    MPI_Comm_free(&c);
}

/* An invalid colour at one rank fails at all ranks; no rank waits forever. */
static void test_invalid_color(void)
{
    MPI_Comm c = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rc = MPI_Comm_split(MPI_COMM_WORLD, mpitest_rank == mpitest_size - 1 ? -4 : 0, 0, &c);
    EXPECT_EQ(rc, mpitest_rank == mpitest_size - 1 ? MPI_ERR_ARG : MPI_ERR_OTHER);
    EXPECT(c == MPI_COMM_NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* The number of ranks on this node, counted by its name. */
static int count_ranks_on_node(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "", *all = malloc((size_t)mpitest_size * sizeof(name));
    int length, same = 0;
    MPI_Get_processor_name(name, &length);
    MPI_Allgather(name, sizeof(name), MPI_CHAR, all, sizeof(name), MPI_CHAR, MPI_COMM_WORLD);
    for (int i = 0; i < mpitest_size; i++)
        same += strcmp(name, all + (size_t)i * sizeof(name)) == 0;
    free(all);
    return same;
}

static bool has_no_any_tag_hint(MPI_Comm comm)
{
    char value[8] = "";
    int room = sizeof(value), found = 0;
    MPI_Info info;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get_string(info, "mpi_assert_no_any_tag", &room, value, &found);
    MPI_Info_free(&info);
    return found && strcmp(value, "true") == 0;
}

static void test_split_types(void)
{
    MPI_Comm c, part;
    int size;
    MPI_Info info;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c);
    EXPECT(c != MPI_COMM_NULL);
    MPI_Comm_size(c, &size);
    EXPECT_EQ(size, count_ranks_on_node());
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
    MPI_Comm_split_type(c, MPI_COMM_TYPE_HW_GUIDED, 0, info, &part);
    EXPECT(part != MPI_COMM_NULL);
    MPI_Comm_free(&part);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true"); /* the new communicator gets the info too */
    MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, 0, info, &part);
    EXPECT(has_no_any_tag_hint(part));
    EXPECT(!has_no_any_tag_hint(c));
    MPI_Comm_free(&part);
    MPI_Info_set(info, "mpi_hw_resource_type", "hyperspace");
    MPI_Comm_split_type(c, MPI_COMM_TYPE_HW_GUIDED, 0, info, &part);
    EXPECT(part == MPI_COMM_NULL);
    MPI_Comm_split_type(c, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &part);
    if (part != MPI_COMM_NULL) { /* the job has several nodes; the info contains the resource type */
        int part_size, room = 64, found = 0;
        char kind[64] = "";
        MPI_Comm_size(part, &part_size);
        EXPECT(part_size < size);
        MPI_Info_get_string(info, "mpi_hw_resource_type", &room, kind, &found);
        EXPECT(found && kind[0] && strcmp(kind, "hyperspace") != 0);
        MPI_Comm_free(&part);
    }
    MPI_Comm_split_type(c, MPI_UNDEFINED, 0, MPI_INFO_NULL, &part);
    EXPECT(part == MPI_COMM_NULL);
    MPI_Info_free(&info);
    MPI_Comm_free(&c);
}

/* Names of process sets are compared without regard to case, as in MPI_Group_from_session_pset. */
static void test_process_sets(void)
{
    static const char *const names[] = {"mpi://WORLD", "MPI://world", "mpi://SELF", "mpi://self",
                                        "mpi://none"};
    MPI_Info info;
    MPI_Info_create(&info);
    for (int i = 0; i < 5; i++) {
        MPI_Comm part;
        int n = 0;
        MPI_Info_set(info, "mpi_pset_name", names[i]);
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &part);
        if (part != MPI_COMM_NULL) {
            MPI_Comm_size(part, &n);
            MPI_Comm_free(&part);
        }
        EXPECT_EQ(n, i < 2 ? mpitest_size : i < 4 ? 1 : 0);
    }
    MPI_Info_free(&info);
}

/* Each key of MPI_Get_hw_resource_info is a URI that MPI_Comm_split_type accepts. */
static void test_resource_types(void)
{
    MPI_Info types, info;
    MPI_Comm part;
    int n;
    MPI_Get_hw_resource_info(&types);
    MPI_Info_create(&info);
    MPI_Info_get_nkeys(types, &n);
    EXPECT(n > 0);
    for (int i = 0; i < n; i++) {
        char key[MPI_MAX_INFO_KEY], value[8] = "";
        int room = sizeof(value), bound = 0;
        MPI_Info_get_nthkey(types, i, key);
        EXPECT(strstr(key, "://"));
        MPI_Info_get_string(types, key, &room, value, &bound);
        bound = strcmp(value, "true") == 0;
        EXPECT(bound || strcmp(value, "false") == 0);
        MPI_Info_set(info, "mpi_hw_resource_type", key);
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &part);
        EXPECT_EQ(part != MPI_COMM_NULL, bound);
        if (part != MPI_COMM_NULL)
            MPI_Comm_free(&part);
    }
    MPI_Info_free(&info);
    MPI_Info_free(&types);
}

static MPI_Group create_lower_group(int n)
{
    MPI_Group all, some;
    int range[1][3] = {{0, n - 1, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_range_incl(all, 1, range, &some);
    MPI_Group_free(&all);
    return some;
}

static void test_create_from_groups(void)
{
    MPI_Comm c;
    for (int n = 1; n <= mpitest_size; n++) {
        MPI_Group g = create_lower_group(n);
        MPI_Comm_create(MPI_COMM_WORLD, g, &c);
        EXPECT_EQ(c != MPI_COMM_NULL, mpitest_rank < n);
        if (c != MPI_COMM_NULL) {
            expect_sum(c, n * (n - 1) / 2);
            MPI_Comm_free(&c);
        }
        if (mpitest_rank < n) { /* the other ranks do not take part */
            MPI_Comm_create_group(MPI_COMM_WORLD, g, 2147483646 - n, &c);
            expect_sum(c, n * (n - 1) / 2);
            MPI_Comm_free(&c);
        }
        MPI_Group_free(&g);
    }
    MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &c);
    EXPECT(c == MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    test_split_by_parity();
    test_equal_keys_and_undefined();
    test_invalid_color();
    test_split_types();
    test_process_sets();
    test_resource_types();
    test_create_from_groups();
    return mpitest_end();
}
