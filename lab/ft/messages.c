/* messages.c: messages of 8 bytes between ranks 0 and 1. Rank 0 raises SIGUSR2 before and after each part
 * whose instructions step.c counts: ping-pong messages, then messages in one direction.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>

enum { WARM = 2000, MESSAGES = 200 };

static int rank;

static void messages_send(void)
{
    double x = 0;
    MPI_Send(&x, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD);
}

static void messages_receive(void)
{
    double x;
    MPI_Recv(&x, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void messages_run(int n, bool answered)
{
    for (int i = 0; i < n; i++) {
        if (rank == 0)
            messages_send();
        if (rank == 1 || answered)
            messages_receive();
        if (rank == 1 && answered)
            messages_send();
    }
}

static void messages_run_counted(bool answered)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        raise(SIGUSR2);
    messages_run(MESSAGES, answered);
    if (rank == 0)
        raise(SIGUSR2);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    messages_run(WARM, true);
    messages_run_counted(true);
    messages_run_counted(false);
    MPI_Finalize();
    return 0;
}
