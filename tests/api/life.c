/* life.c: the permitted calls and the state before MPI_Init, while MPI is initialised, and after
 * MPI_Finalize.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static void expect_state(int initialized, int finalized)
{
    int flag = -1;
    EXPECT_EQ(MPI_Initialized(&flag), MPI_SUCCESS);
    EXPECT_EQ(flag, initialized);
    EXPECT_EQ(MPI_Finalized(&flag), MPI_SUCCESS);
    EXPECT_EQ(flag, finalized);
}

/* Calls the functions that the standard permits at any time. */
static void call_anytime_functions(void)
{
    int major = -1, minor = -1, length = -1, found = 0, size = 16;
    char text[MPI_MAX_LIBRARY_VERSION_STRING], value[16] = "";
    MPI_Info info;
    EXPECT_EQ(MPI_Get_version(&major, &minor), MPI_SUCCESS);
    EXPECT_EQ(major, MPI_VERSION);
    EXPECT_EQ(minor, MPI_SUBVERSION);
    EXPECT_EQ(MPI_Abi_get_version(&major, &minor), MPI_SUCCESS);
    EXPECT_EQ(major, MPI_ABI_VERSION);
    EXPECT_EQ(minor, MPI_ABI_SUBVERSION);
    EXPECT_EQ(MPI_Get_library_version(text, &length), MPI_SUCCESS);
    EXPECT(strstr(text, "Fishplate " FISHPLATE_VERSION));
    EXPECT_EQ(length, strlen(text));
    EXPECT_EQ(MPI_Info_create(&info), MPI_SUCCESS);
    EXPECT_EQ(MPI_Info_set(info, "key", "value"), MPI_SUCCESS);
    EXPECT_EQ(MPI_Info_get_string(info, "key", &size, value, &found), MPI_SUCCESS);
    EXPECT(found && strcmp(value, "value") == 0);
    EXPECT(MPI_Info_fromint(MPI_Info_toint(info)) == info);
    EXPECT_EQ(MPI_Info_free(&info), MPI_SUCCESS);
    EXPECT(info == MPI_INFO_NULL);
    EXPECT_EQ(MPI_Error_class(MPI_ERR_TAG, &major), MPI_SUCCESS);
    EXPECT_EQ(major, MPI_ERR_TAG);
}

static void expect_running(int level)
{
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = -1, flag = 0, provided = -1;
    void *memory = NULL;
    EXPECT_EQ(MPI_Get_processor_name(name, &length), MPI_SUCCESS);
    EXPECT_EQ(length, strlen(name));
    EXPECT(length > 0);
    EXPECT_EQ(MPI_Query_thread(&provided), MPI_SUCCESS);
    EXPECT_EQ(provided, level);
    EXPECT_EQ(MPI_Is_thread_main(&flag), MPI_SUCCESS);
    EXPECT(flag);
    double before = MPI_Wtime();
    EXPECT(MPI_Wtime() >= before && MPI_Wtick() > 0 && MPI_Wtick() < 1e-3);
    EXPECT_EQ(MPI_Alloc_mem(1000, MPI_INFO_NULL, &memory), MPI_SUCCESS);
    memset(memory, 1, 1000);
    EXPECT_EQ(MPI_Free_mem(memory), MPI_SUCCESS);
    EXPECT_EQ(MPI_Pcontrol(1), MPI_SUCCESS);
    EXPECT_EQ(MPI_Aint_diff(MPI_Aint_add(100, 20), 100), 20);
}

int main(int argc, char **argv)
{
    int level = argc > 1 ? atoi(argv[1]) : MPI_THREAD_SINGLE, provided = -1;
    expect_state(0, 0);
    call_anytime_functions();
    EXPECT_EQ(MPI_Init_thread(&argc, &argv, level, &provided), MPI_SUCCESS);
    EXPECT_EQ(provided, level);
    expect_state(1, 0);
    call_anytime_functions();
    expect_running(level);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Init(NULL, NULL), MPI_ERR_OTHER);
    EXPECT_EQ(MPI_Finalize(), MPI_SUCCESS);
    expect_state(1, 1);
    call_anytime_functions();
    return expect_done();
}
