/* kinds.c: queries about GPU memory: mpi_memory_alloc_kinds in the info of MPI_COMM_WORLD, of sessions,
 * windows and files, and mpi-ext.h. With the argument `off` GPU support is off.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi-ext.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if !defined(MPIX_CUDA_AWARE_SUPPORT) || !MPIX_CUDA_AWARE_SUPPORT
#error "mpi-ext.h does not report CUDA"
#endif

static int errors;

static void expect_kinds(MPI_Info info, const char *object, int on)
{
    char kinds[MPI_MAX_INFO_VAL] = "";
    int length = sizeof(kinds), found;
    MPI_Info_get_string(info, "mpi_memory_alloc_kinds", &length, kinds, &found);
    if (!found || !strstr(kinds, "system") || !strstr(kinds, "mpi") || !strstr(kinds, "cuda:device") != !on) {
        printf("mpi_memory_alloc_kinds of %s is '%s'\n", object, kinds);
        errors++;
    }
    MPI_Info_free(&info);
}

/* A communicator returns mpi_assert_memory_alloc_kinds if the library knows all kinds in its value. */
static void expect_assertion(const char *kinds, int used)
{
    char value[MPI_MAX_INFO_VAL] = "";
    int length = sizeof(value), found;
    MPI_Comm comm;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_memory_alloc_kinds", kinds);
    MPI_Comm_dup_with_info(MPI_COMM_SELF, info, &comm);
    MPI_Info_free(&info);
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get_string(info, "mpi_assert_memory_alloc_kinds", &length, value, &found);
    if (!found != !used || (used && strcmp(value, kinds) != 0)) {
        printf("mpi_assert_memory_alloc_kinds=%s: the communicator has '%s'\n", kinds, value);
        errors++;
    }
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    const int on = argc < 2 || strcmp(argv[1], "off") != 0;
    char name[64];
    MPI_Session session;
    MPI_Info info;
    MPI_Win window;
    MPI_File file;
    MPI_Init(&argc, &argv);
    if (MPIX_Query_cuda_support() != on) {
        printf("MPIX_Query_cuda_support returned %d\n", !on);
        errors++;
    }
    MPI_Comm_get_info(MPI_COMM_WORLD, &info);
    expect_kinds(info, "MPI_COMM_WORLD", on);
    expect_assertion("system", 1);
    expect_assertion("system,mpi:alloc_mem", 1);
    expect_assertion("system,cuda:device", on);
    expect_assertion("system,cud", 0);
    expect_assertion("system,", 0);
    expect_assertion("rocm", 0);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_get_info(session, &info);
    expect_kinds(info, "a session", on);
    MPI_Session_finalize(&session);
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_get_info(window, &info);
    expect_kinds(info, "a window", on);
    MPI_Win_free(&window);
    snprintf(name, sizeof(name), "/tmp/fishplate-gpu-kinds-%ld", (long)getpid());
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    MPI_File_get_info(file, &info);
    expect_kinds(info, "a file", on);
    MPI_File_close(&file);
    MPI_Finalize();
    return errors ? 1 : 0;
}
