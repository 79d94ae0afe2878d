/* service.c: a server, and clients that are separate jobs. The server publishes a name, serves one client after the
 * other, and computes the sum of the numbers of the ranks of each client.
 *
 *     mpicc service.c -o service
 *     mpiexec -n 2 ./service sums 2 &             serves two clients under the name "sums", and ends
 *     mpiexec -n 3 ./service sums
 *     mpiexec -n 1 ./service sums
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int rank;

/* Serves a client; all ranks of both groups take part. The sum of the clients' numbers is sent back. */
static void serve_client(MPI_Comm client, int number)
{
    int sum = 0, zero = 0, size;
    MPI_Comm_remote_size(client, &size);
    MPI_Allreduce(&zero, &sum, 1, MPI_INT, MPI_SUM, client); /* the servers get the sum over the clients */
    MPI_Bcast(&sum, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, client);
    if (rank == 0)
        printf("client %d, ranks %d: %d\n", number, size, sum);
    fflush(stdout);
}

static void run_server(const char *name, int clients)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm client;
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name(name, MPI_INFO_NULL, port);
    }
    for (int i = 0; i < clients; i++) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &client);
        serve_client(client, i);
        MPI_Comm_disconnect(&client);
    }
    if (rank == 0) {
        MPI_Unpublish_name(name, MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
}

/* Looks up the service, repeatedly, since the server may not have started yet. */
static int look_up_service(const char *name, char *port)
{
    struct timespec pause = {0, 20000000};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 1500; i++) {
        if (MPI_Lookup_name(name, MPI_INFO_NULL, port) == MPI_SUCCESS)
            return 1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

static int run_client(const char *name)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm server;
    int mine = rank + 1, zero, sum, found = rank == 0 ? look_up_service(name, port) : 0;
    MPI_Bcast(&found, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!found) {
        fprintf(stderr, "nobody has published \"%s\"\n", name);
        return 1;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server);
    MPI_Allreduce(&mine, &zero, 1, MPI_INT, MPI_SUM, server);
    MPI_Bcast(&sum, 1, MPI_INT, 0, server);
    MPI_Comm_disconnect(&server);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return sum != size * (size + 1) / 2;
}

int main(int argc, char **argv)
{
    int rc = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 2)
        run_server(argv[1], atoi(argv[2]));
    else if (argc > 1)
        rc = run_client(argv[1]);
    MPI_Finalize();
    return rc;
}
