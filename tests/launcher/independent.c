/* independent.c: two jobs of different mpiexec commands, connected by a port; a process of one job dies
 * while processes of the other job wait for it. tests/launcher/independent.sh runs the program.
 *
 *     serve NAME [fatal]    publishes a port and prints "published"; accepts a job and receives from its rank 1, which dies. Prints the
 *                           class of the error; fatal: with MPI_ERRORS_ARE_FATAL
 *     die NAME              connects; rank 1 is killed once the other job's rank 0 is about to receive
 *     leave NAME            connects, disconnects and ends; the other job receives a message from each rank
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi-ext.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VICTIM = 1, TAG_GO = 1, TAG_NEVER, TAG_KIND };

static int rank;

static const char *error_class_name(int rc)
{
    int class = rc;
    MPI_Error_class(rc, &class);
    return class == MPI_SUCCESS            ? "success"
           : class == MPIX_ERR_PROC_FAILED ? "failed process"
                                           : "another error";
}

/* Sends the first message to a process that has ended; the library may not have detected its death yet. */
static void send_to_ended(MPI_Comm inter, int pid)
{
    int nothing = 0;
    while (kill(pid, 0) == 0)
        sched_yield();
    const int rc = MPI_Send(&nothing, 1, MPI_INT, VICTIM, TAG_NEVER, inter);
    printf("rank %d: first send: %s\n", rank, error_class_name(rc));
}

/* Only rank 0 sends to the living victim: the other ranks have exchanged no message with it. */
static void expect_death(MPI_Comm inter, int pid)
{
    int nothing = 0;
    if (rank == 0)
        MPI_Send(&nothing, 1, MPI_INT, VICTIM, TAG_GO, inter);
    else
        send_to_ended(inter, pid);
    int rc = MPI_Recv(&nothing, 1, MPI_INT, VICTIM, TAG_NEVER, inter, MPI_STATUS_IGNORE);
    printf("rank %d: receive: %s\n", rank, error_class_name(rc));
    rc = MPI_Send(&nothing, 1, MPI_INT, VICTIM, TAG_NEVER, inter);
    printf("rank %d: send: %s\n", rank, error_class_name(rc));
    rc = MPI_Barrier(inter);
    printf("rank %d: barrier: %s\n", rank, error_class_name(rc));
    MPI_Comm_free(&inter);
}

static void expect_messages(MPI_Comm inter)
{
    int clients, sum = 0, one;
    MPI_Comm_remote_size(inter, &clients);
    for (int i = 0; i < clients; i++, sum += one)
        MPI_Recv(&one, 1, MPI_INT, i, TAG_GO, inter, MPI_STATUS_IGNORE);
    const int rc = MPI_Comm_disconnect(&inter);
    printf("rank %d: %d messages, disconnect: %s\n", rank, sum, error_class_name(rc));
}

static void serve_jobs(const char *name, int is_fatal)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm client;
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name(name, MPI_INFO_NULL, port);
        printf("published\n");
        fflush(stdout);
    }
    for (int served = 0; served < 2; served++) { /* one job with a victim, one that disconnects */
        int dies;                                /* 0, or the process number of the victim */
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &client);
        MPI_Recv(&dies, 1, MPI_INT, 0, TAG_KIND, client, MPI_STATUS_IGNORE);
        MPI_Send(&dies, 1, MPI_INT, 0, TAG_KIND, client);
        if (!is_fatal)
            MPI_Comm_set_errhandler(client, MPI_ERRORS_RETURN);
        if (dies)
            expect_death(client, dies);
        else
            expect_messages(client);
    }
}

static void connect_and_end(const char *name, int dies)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm server;
    int servers, one = 1;
    if (dies) {
        dies = (int)getpid();
        MPI_Bcast(&dies, 1, MPI_INT, VICTIM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        MPI_Lookup_name(name, MPI_INFO_NULL, port);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server);
    MPI_Comm_remote_size(server, &servers);
    for (int i = 0; rank == 0 && i < servers; i++) {
        MPI_Send(&dies, 1, MPI_INT, i, TAG_KIND, server);
        MPI_Recv(&dies, 1, MPI_INT, i, TAG_KIND, server, MPI_STATUS_IGNORE);
    }
    /* The victim dies after this barrier, so that rank 0 has finished its exchange with the servers. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (dies && rank == VICTIM) {
        MPI_Recv(&one, 1, MPI_INT, 0, TAG_GO, server, MPI_STATUS_IGNORE);
        raise(SIGKILL);
    }
    for (int i = 0; !dies && i < servers; i++)
        MPI_Send(&one, 1, MPI_INT, i, TAG_GO, server);
    if (dies)
        MPI_Comm_free(&server);
    else
        MPI_Comm_disconnect(&server);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 3)
        MPI_Abort(MPI_COMM_WORLD, 9);
    if (strcmp(argv[1], "serve") == 0)
        serve_jobs(argv[2], argc > 3);
    else
        connect_and_end(argv[2], strcmp(argv[1], "die") == 0);
    MPI_Finalize();
    return 0;
}
