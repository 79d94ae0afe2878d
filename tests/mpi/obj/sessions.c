/* sessions.c: sessions without MPI_Init: process sets, a communicator from a group, intercommunicators from
 * two groups, several sessions one after the other and at once.
 *
 * ranks: 1 2 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static int handler_calls;

static void on_error(MPI_Session *s, int *code, ...)
{
    (void)s;
    handler_calls = *code;
}

static void expect_sum(MPI_Comm c, int wanted)
{
    int rank, sum = -1;
    MPI_Comm_rank(c, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c);
    EXPECT_EQ(sum, wanted);
}

static void test_psets(MPI_Session s)
{
    int n, len, world = 0, self = 0, flag;
    char name[MPI_MAX_PSET_NAME_LEN], size[16], wanted[16];
    MPI_Info info;
    MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n);
    for (int i = 0; i < n; i++) {
        len = 0;
        MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, NULL);
        EXPECT(len > 1 && len <= MPI_MAX_PSET_NAME_LEN);
        MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, name);
        EXPECT_EQ(len, (int)strlen(name) + 1);
        world += strcmp(name, "mpi://WORLD") == 0;
        self += strcmp(name, "mpi://SELF") == 0;
    }
    EXPECT(world == 1 && self == 1);
    MPI_Session_get_pset_info(s, "mpi://WORLD", &info);
    len = sizeof(size);
    MPI_Info_get_string(info, "mpi_size", &len, size, &flag);
    snprintf(wanted, sizeof(wanted), "%d", mpitest_size);
    EXPECT(flag && strcmp(size, wanted) == 0);
    MPI_Info_free(&info);
}

static void test_invalid_calls(MPI_Session s)
{
    MPI_Errhandler e;
    MPI_Group g = MPI_GROUP_EMPTY;
    MPI_Session_create_errhandler(on_error, &e);
    MPI_Session_set_errhandler(s, e);
    MPI_Errhandler_free(&e);
    EXPECT_EQ(MPI_Group_from_session_pset(s, "mpi://NOWHERE", &g), MPI_ERR_ARG);
    EXPECT(handler_calls == MPI_ERR_ARG && g == MPI_GROUP_NULL);
    int len = 4;
    EXPECT_EQ(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &len, NULL), MPI_ERR_ARG);
    EXPECT_EQ(len, 4);
    MPI_Session_call_errhandler(s, MPI_ERR_IO);
    EXPECT_EQ(handler_calls, MPI_ERR_IO);
    MPI_Session_set_errhandler(s, MPI_ERRORS_ARE_FATAL);
}

static MPI_Comm create_world(MPI_Session s, const char *tag)
{
    MPI_Group g;
    MPI_Comm c;
    MPI_Group_from_session_pset(s, "mpi://WORLD", &g);
    MPI_Comm_create_from_group(g, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &c);
    MPI_Group_free(&g);
    return c;
}

/* Creates an intercommunicator of the lower and the upper half from two groups. */
static void test_intercomm_from_groups(MPI_Session s)
{
    MPI_Group all, half[2];
    MPI_Comm inter, whole;
    int lower = mpitest_size / 2, mine = mpitest_rank >= lower;
    if (lower == 0)
        return;
    int ranges[2][1][3] = {{{0, lower - 1, 1}}, {{lower, mpitest_size - 1, 1}}};
    MPI_Group_from_session_pset(s, "mpi://WORLD", &all);
    for (int i = 0; i < 2; i++)
        MPI_Group_range_incl(all, 1, ranges[i], &half[i]);
    MPI_Intercomm_create_from_groups(half[mine], 0, half[!mine], 0, "bridge", MPI_INFO_NULL,
                                     MPI_ERRORS_ARE_FATAL, &inter);
    MPI_Intercomm_merge(inter, mine, &whole);
    expect_sum(whole, mpitest_size * (mpitest_size - 1) / 2);
    MPI_Comm_free(&whole);
    MPI_Comm_disconnect(&inter);
    for (int i = 0; i < 2; i++)
        MPI_Group_free(&half[i]);
    MPI_Group_free(&all);
}

/* A level that does not exist is an error, not the default level. */
static void test_unknown_level(void)
{
    MPI_Session s = MPI_SESSION_NULL;
    MPI_Info info;
    int class;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MANY");
    const int rc = MPI_Session_init(info, MPI_ERRORS_RETURN, &s);
    MPI_Error_class(rc, &class);
    EXPECT(class == MPI_ERR_INFO_VALUE && s == MPI_SESSION_NULL);
    MPI_Info_free(&info);
}

int main(void)
{
    MPI_Session s, other;
    MPI_Info info;
    int flag, total = 0, len;
    char level[64];
    test_unknown_level();
    for (int round = 0; round < 3; round++) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "thread_level", round ? "MPI_THREAD_MULTIPLE" : "MPI_THREAD_SINGLE");
        MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &s);
        MPI_Info_free(&info);
        MPI_Initialized(&flag);
        EXPECT(!flag);
        MPI_Session_get_info(s, &info);
        len = sizeof(level);
        MPI_Info_get_string(info, "thread_level", &len, level, &flag);
        EXPECT(flag && strncmp(level, "MPI_THREAD_", 11) == 0);
        MPI_Info_free(&info);
        MPI_Comm c = create_world(s, "first");
        MPI_Comm_rank(c, &mpitest_rank);
        MPI_Comm_size(c, &mpitest_size);
        expect_sum(c, mpitest_size * (mpitest_size - 1) / 2);
        test_psets(s);
        test_invalid_calls(s);
        test_intercomm_from_groups(s);
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other);
        MPI_Comm d = create_world(other, "second");
        expect_sum(d, mpitest_size * (mpitest_size - 1) / 2);
        MPI_Comm_disconnect(&d);
        MPI_Session_finalize(&other);
        EXPECT(other == MPI_SESSION_NULL);
        MPI_Allreduce(&mpitest_failures, &total, 1, MPI_INT, MPI_SUM, c);
        MPI_Comm_disconnect(&c);
        MPI_Session_finalize(&s);
    }
    return total || mpitest_failures ? 1 : 0;
}
