/* infos.c: info objects, also before MPI_Init and after MPI_Finalize, and MPI_INFO_ENV.
 *
 * ranks: 1 2 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static int fill_info(MPI_Info *info)
{
    int n = 0;
    if (MPI_Info_create(info) || MPI_Info_set(*info, "one", "1") || MPI_Info_set(*info, "two", "zwei"))
        return -1;
    return MPI_Info_get_nkeys(*info, &n) ? -1 : n;
}

static void test_values(MPI_Info info)
{
    char text[64] = "untouched", key[MPI_MAX_INFO_KEY];
    int flag, len = 0;
    MPI_Info_get_string(info, "two", &len, text, &flag);
    EXPECT(flag && len == 5 && strcmp(text, "untouched") == 0);
    len = 3;
    MPI_Info_get_string(info, "two", &len, text, &flag);
    EXPECT(flag && len == 5 && strcmp(text, "zw") == 0);
    len = 17;
    MPI_Info_get_string(info, "three", &len, text, &flag);
    EXPECT(!flag && len == 17);
    MPI_Info_get(info, "two", 4, text, &flag);
    EXPECT(flag && strcmp(text, "zwei") == 0);
    MPI_Info_get(info, "two", 2, text, &flag);
    EXPECT(flag && strcmp(text, "zw") == 0);
    MPI_Info_get_valuelen(info, "one", &len, &flag);
    EXPECT(flag && len == 1);
    MPI_Info_get_nthkey(info, 1, key);
    EXPECT(strcmp(key, "two") == 0);
    EXPECT_EQ(MPI_Info_get_nthkey(info, 2, key), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Info_delete(info, "three"), MPI_ERR_INFO_NOKEY);
    MPI_Info copy;
    MPI_Info_dup(info, &copy);
    MPI_Info_delete(info, "one");
    MPI_Info_get_nkeys(copy, &len);
    EXPECT_EQ(len, 2);
    MPI_Info_free(&copy);
    EXPECT(copy == MPI_INFO_NULL);
}

static void test_environment(int argc, char **argv)
{
    char text[MPI_MAX_INFO_VAL], size[16];
    int len = sizeof(text), flag;
    MPI_Info env = MPI_INFO_ENV, mine;
    snprintf(size, sizeof(size), "%d", mpitest_size);
    MPI_Info_get_string(MPI_INFO_ENV, "command", &len, text, &flag);
    EXPECT(flag && strstr(text, "infos") != NULL);
    len = sizeof(text);
    MPI_Info_get_string(MPI_INFO_ENV, "maxprocs", &len, text, &flag);
    EXPECT(flag && strcmp(text, size) == 0);
    EXPECT_EQ(MPI_Info_free(&env), MPI_ERR_INFO);
    EXPECT_EQ(MPI_Info_set(MPI_INFO_ENV, "a", "b"), MPI_ERR_INFO);
    MPI_Info_create_env(argc, argv, &mine);
    len = sizeof(text);
    MPI_Info_get_string(mine, "command", &len, text, &flag);
    EXPECT(flag && strcmp(text, argv[0]) == 0);
    MPI_Info_free(&mine);
}

int main(int argc, char **argv)
{
    MPI_Info early, late;
    int n = fill_info(&early);
    mpitest_begin(&argc, &argv);
    EXPECT_EQ(n, 2);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    test_values(early);
    test_environment(argc, argv);
    int rc = mpitest_end();
    if (MPI_Info_free(&early) || fill_info(&late) != 2 || MPI_Info_free(&late))
        rc = 4;
    return rc;
}
