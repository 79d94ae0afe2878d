/* cvars.c: control variables before and after MPI_Init: names, types, enumerations, strings and their
 * lengths, reading, writing, and refused writes.
 * ranks: 1 2
 * env: FISHPLATE_SPIN_US=777
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static void test_before_init_thread(void)
{
    int n;
    EXPECT_EQ(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
    EXPECT_EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
}

static int find_cvar(const char *name)
{
    int index = -1;
    EXPECT_EQ(MPI_T_cvar_get_index(name, &index), MPI_SUCCESS);
    return index;
}

static void test_strings(void)
{
    char name[64], small[4] = "zzz";
    int i = find_cvar("EAGER_MAX"), len = sizeof(name), n;
    MPI_T_cvar_get_info(i, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    EXPECT_EQ(strcmp(name, "EAGER_MAX"), 0);
    EXPECT_EQ(len, strlen("EAGER_MAX") + 1);
    len = 4;
    MPI_T_cvar_get_info(i, small, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    EXPECT_EQ(strcmp(small, "EAG"), 0);
    EXPECT_EQ(len, strlen("EAGER_MAX") + 1);
    len = 0;
    MPI_T_cvar_get_info(i, small, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    EXPECT_EQ(len, strlen("EAGER_MAX") + 1);
    EXPECT_EQ(strcmp(small, "EAG"), 0);
    len = 99;
    MPI_T_cvar_get_info(i, NULL, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    EXPECT_EQ(len, strlen("EAGER_MAX") + 1);
    EXPECT_EQ(MPI_T_cvar_get_index("NO_SUCH", &n), MPI_T_ERR_INVALID_NAME);
    EXPECT_EQ(MPI_T_cvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
              MPI_T_ERR_INVALID_INDEX);
}

static void read_all_cvars(void)
{
    int n;
    MPI_T_cvar_get_num(&n);
    EXPECT(n > 5);
    for (int i = 0; i < n; i++) {
        char name[128], desc[1024];
        int name_len = sizeof(name), desc_len = sizeof(desc), verbosity, bind, scope, count, index;
        MPI_Datatype type;
        MPI_T_enum values;
        MPI_T_cvar_handle h;
        EXPECT_EQ(MPI_T_cvar_get_info(i, name, &name_len, &verbosity, &type, &values, desc, &desc_len, &bind,
                                      &scope),
                  MPI_SUCCESS);
        EXPECT(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
        EXPECT_EQ(bind, MPI_T_BIND_NO_OBJECT);
        EXPECT(desc_len > 10);
        EXPECT(type == MPI_INT || type == MPI_CHAR || type == MPI_UNSIGNED_LONG_LONG);
        MPI_T_cvar_get_index(name, &index);
        EXPECT_EQ(index, i);
        EXPECT_EQ(MPI_T_cvar_handle_alloc(i, NULL, &h, &count), MPI_SUCCESS);
        char *buf = malloc((size_t)count * 8);
        EXPECT_EQ(MPI_T_cvar_read(h, buf), MPI_SUCCESS);
        free(buf);
        MPI_T_cvar_handle_free(&h);
        EXPECT(h == MPI_T_CVAR_HANDLE_NULL);
    }
    EXPECT_EQ(MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &n), MPI_T_ERR_INVALID_HANDLE);
}

static void test_enumerations(void)
{
    MPI_T_enum e;
    char name[32];
    int n, len, value = -1;
    MPI_T_cvar_get_info(find_cvar("RENDEZVOUS"), NULL, NULL, NULL, NULL, &e, NULL, NULL, NULL, NULL);
    EXPECT(e != MPI_T_ENUM_NULL);
    MPI_T_enum_get_info(e, &n, NULL, NULL);
    EXPECT_EQ(n, 12);
    len = sizeof(name);
    MPI_T_enum_get_item(e, 3, &value, name, &len);
    EXPECT_EQ(value, 3);
    EXPECT_EQ(strcmp(name, "get"), 0);
    EXPECT_EQ(MPI_T_enum_get_item(e, 12, &value, name, &len), MPI_T_ERR_INVALID_ITEM);
    EXPECT_EQ(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &n, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    MPI_T_cvar_get_info(find_cvar("SPIN_US"), NULL, NULL, NULL, NULL, &e, NULL, NULL, NULL, NULL);
    EXPECT(e == MPI_T_ENUM_NULL);
}

static MPI_T_cvar_handle open_cvar(const char *name)
{
    MPI_T_cvar_handle h;
    int count;
    MPI_T_cvar_handle_alloc(find_cvar(name), NULL, &h, &count);
    return h;
}

/* Writes variables: MPI_Init uses values written before it; afterwards only variables that the library
 * reads again can be written. */
static void test_writes(int running)
{
    MPI_T_cvar_handle eager = open_cvar("EAGER_MAX"), spin = open_cvar("SPIN_US"), coll = open_cvar("COLL");
    unsigned long long size = 0, wanted = 8192;
    int us = 0, new_us = 555, bad = -5;
    MPI_T_cvar_read(spin, &us);
    EXPECT_EQ(us, running ? 555 : 777);
    EXPECT_EQ(MPI_T_cvar_write(spin, &new_us), MPI_SUCCESS);
    EXPECT_EQ(MPI_T_cvar_write(spin, &bad), MPI_T_ERR_INVALID);
    MPI_T_cvar_read(spin, &us);
    EXPECT_EQ(us, 555);
    if (running)
        wanted = 4096;
    EXPECT_EQ(MPI_T_cvar_write(eager, &wanted), running ? MPI_T_ERR_CVAR_SET_NEVER : MPI_SUCCESS);
    MPI_T_cvar_read(eager, &size);
    EXPECT_EQ(size, 8192);
    char text[1024] = "barrier=bst", got[1024];
    EXPECT_EQ(MPI_T_cvar_write(coll, text), running ? MPI_T_ERR_CVAR_SET_NEVER : MPI_SUCCESS);
    MPI_T_cvar_read(coll, got);
    EXPECT_EQ(strcmp(got, "barrier=bst"), 0);
    MPI_T_cvar_handle_free(&eager);
    MPI_T_cvar_handle_free(&spin);
    MPI_T_cvar_handle_free(&coll);
}

int main(int argc, char **argv)
{
    int provided = -1;
    test_before_init_thread();
    EXPECT_EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
    EXPECT_EQ(provided, MPI_THREAD_MULTIPLE);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_finalize(); /* the first MPI_T_init_thread is still in effect */
    test_strings();
    read_all_cvars();
    test_enumerations();
    test_writes(0);
    mpitest_begin(&argc, &argv);
    test_writes(1);
    read_all_cvars();
    int rc = mpitest_end();
    read_all_cvars();
    EXPECT_EQ(MPI_T_finalize(), MPI_SUCCESS);
    test_before_init_thread();
    return rc || mpitest_failures;
}
