/* threads.c: four threads per rank, each with its own communicator and 100 messages of 10 bytes to the
 * other of two ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <pthread.h>

enum { THREADS = 4, MESSAGES = 100 };

static MPI_Comm comms[THREADS];
static int rank;

static void *exchange_messages(void *arg)
{
    MPI_Comm comm = *(MPI_Comm *)arg;
    char out[10] = "", in[10];
    for (int i = 0; i < MESSAGES; i++)
        MPI_Sendrecv(out, 10, MPI_BYTE, !rank, 0, in, 10, MPI_BYTE, !rank, 0, comm, MPI_STATUS_IGNORE);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, exchange_messages, &comms[t]);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_free(&comms[t]);
    MPI_Finalize();
    return 0;
}
