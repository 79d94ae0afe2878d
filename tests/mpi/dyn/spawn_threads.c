/* spawn_threads.c: threads spawn, exchange messages and disconnect at once, each on its own communicator:
 * no thread disconnects from the processes of another thread. And a port that a thread closes while
 * another thread accepts on it.
 *
 * ranks: 1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "mpitest.h"

#define THREADS 4
#define ROUNDS  3

static char *self;

static void *spawn_and_disconnect(void *arg)
{
    MPI_Comm comm = *(MPI_Comm *)arg;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm child;
        int number = -1;
        EXPECT_EQ(MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, comm, &child, MPI_ERRCODES_IGNORE),
                  MPI_SUCCESS);
        MPI_Send(&i, 1, MPI_INT, 0, 0, child);
        MPI_Recv(&number, 1, MPI_INT, 0, 0, child, MPI_STATUS_IGNORE);
        EXPECT_EQ(number, i + 1);
        MPI_Comm_disconnect(&child);
    }
    return NULL;
}

static void test_concurrent_spawns(void)
{
    pthread_t threads[THREADS];
    MPI_Comm comms[THREADS];
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
    for (int i = 0; i < THREADS; i++)
        EXPECT_EQ(pthread_create(&threads[i], NULL, spawn_and_disconnect, &comms[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
}

/* Body of a thread that accepts on a port which is closed before or during the call; both cases return the
 * same error class. */
static void *accept_on_port(void *arg)
{
    MPI_Comm nobody;
    int class = MPI_SUCCESS;
    MPI_Error_class(MPI_Comm_accept(arg, MPI_INFO_NULL, 0, MPI_COMM_SELF, &nobody), &class);
    EXPECT_EQ(class, MPI_ERR_PORT);
    return NULL;
}

static void test_close_during_accept(void)
{
    char port[MPI_MAX_PORT_NAME];
    pthread_t thread;
    for (int i = 0; i < 5; i++) {
        MPI_Open_port(MPI_INFO_NULL, port);
        EXPECT_EQ(pthread_create(&thread, NULL, accept_on_port, port), 0);
        for (int k = 0; k < 5 * i;
             k++) { /* a longer delay makes it more probable that the thread is waiting */
            int flag;
            MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        }
        EXPECT_EQ(MPI_Close_port(port), MPI_SUCCESS);
        pthread_join(thread, NULL);
    }
}

static void run_child(MPI_Comm parent)
{
    int number;
    MPI_Recv(&number, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
    number++;
    MPI_Send(&number, 1, MPI_INT, 0, 0, parent);
    MPI_Comm_disconnect(&parent);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Comm parent;
    self = argv[0];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        run_child(parent);
    } else {
        test_concurrent_spawns();
        test_close_during_accept();
    }
    return mpitest_end();
}
