/* names.c: published names while other processes publish and unpublish theirs.
 *
 * ranks: 4
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>
#include <unistd.h>

#include "mpitest.h"

#define ROUNDS 200

/* Publishes and unpublishes one name, so that its folder is created and removed all the time. */
static void publish_and_unpublish(void)
{
    char service[64], port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME];
    snprintf(service, sizeof(service), "names test %d", (int)getpid());
    MPI_Open_port(MPI_INFO_NULL, port);
    int failed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        failed += MPI_Publish_name(service, MPI_INFO_NULL, port) != MPI_SUCCESS;
        strcpy(found, "");
        failed += MPI_Lookup_name(service, MPI_INFO_NULL, found) != MPI_SUCCESS || strcmp(found, port) != 0;
        failed += MPI_Unpublish_name(service, MPI_INFO_NULL, port) != MPI_SUCCESS;
        failed += get_error_class(MPI_Lookup_name(service, MPI_INFO_NULL, found)) != MPI_ERR_NAME;
    }
    EXPECT_EQ(failed, 0);
    MPI_Close_port(port);
}

static void make_service_name(char *service, size_t size, int publisher, int i)
{
    snprintf(service, size, "inherited %d %d", publisher, i);
}

/* Body of a separate program that ends without unpublishing its names. */
static int publish_and_end(void)
{
    char service[64];
    int failed = 0;
    MPI_Init(NULL, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        make_service_name(service, sizeof(service), (int)getppid(), i);
        failed += MPI_Publish_name(service, MPI_INFO_NULL, "port of nobody") != MPI_SUCCESS;
    }
    _exit(failed);
}

static void run_publisher(char *program)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        const char *libraries = getenv("LD_LIBRARY_PATH");
        char path[4096];
        snprintf(path, sizeof(path), "LD_LIBRARY_PATH=%s", libraries ? libraries : "");
        execve(program, (char *[]){program, "publish", NULL}, (char *[]){path, NULL});
        _exit(127);
    }
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

/* All ranks publish the names of a process that has ended: one rank succeeds with each name, and no other
 * rank removes that entry. */
static void test_names_of_ended_process(char *program)
{
    char service[64], port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME];
    int pid = (int)getpid(), won = 0, agreed = 0;
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (mpitest_rank == 0)
        run_publisher(program);
    snprintf(port, sizeof(port), "port of rank %d", mpitest_rank);
    for (int i = 0; i < ROUNDS; i++) {
        make_service_name(service, sizeof(service), pid, i);
        MPI_Barrier(MPI_COMM_WORLD);
        int mine = MPI_Publish_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS;
        int winners, winner = mine ? mpitest_rank : 0;
        MPI_Allreduce(&mine, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &winner, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        won += winners == 1;
        strcpy(found, "?");
        MPI_Lookup_name(service, MPI_INFO_NULL, found);
        agreed += found[strlen(found) - 1] - '0' == winner;
        MPI_Barrier(MPI_COMM_WORLD);
        if (mine)
            MPI_Unpublish_name(service, MPI_INFO_NULL, port);
    }
    EXPECT_EQ(won, ROUNDS);
    EXPECT_EQ(agreed, ROUNDS);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return publish_and_end();
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    publish_and_unpublish();
    MPI_Barrier(MPI_COMM_WORLD);
    test_names_of_ended_process(argv[0]);
    return mpitest_end();
}
