/* acquaintance.c: MPI_Intercomm_create makes processes of two jobs known to each other. The leader of the second job is
 * stopped before it has sent the result to its group (kill point assembly_results_known); meanwhile a process of
 * the first job that has the result sends a message to a process of the second job that has not. The message must
 * arrive. A thread of the first job continues the leader after a second.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { CHILDREN = 2 };

static atomic_int stop;

static MPI_Comm spawn_children(const char *program)
{
    MPI_Comm children;
    MPI_Info info;
    MPI_Info_create(&info);
    /* The third creation of which the leader of the children knows the result is that with process descriptors. */
    MPI_Info_set(info, "env", "FISHPLATE_KILL_AT=assembly_results_known:3:0:stop");
    MPI_Comm_spawn(program, MPI_ARGV_NULL, CHILDREN, info, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    return children;
}

/* Continues the leader of the children, which may not have stopped yet, again and again. */
static void *continue_process(void *arg)
{
    for (usleep(1000000); !atomic_load(&stop); usleep(100000))
        kill(*(const int *)arg, SIGCONT);
    return NULL;
}

static void run_parents(const char *program)
{
    MPI_Comm children = MPI_COMM_NULL, all;
    int rank, pid = 0, value = 42;
    pthread_t thread;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        children = spawn_children(program);
        MPI_Recv(&pid, 1, MPI_INT, 0, 0, children, MPI_STATUS_IGNORE);
        pthread_create(&thread, NULL, continue_process, &pid);
    }
    MPI_Intercomm_create(MPI_COMM_WORLD, 0, children, 0, 0, &all);
    if (rank == 1)
        MPI_Send(&value, 1, MPI_INT, 1, 0, all);
    if (rank == 0) {
        MPI_Recv(&value, 1, MPI_INT, 0, 0, children, MPI_STATUS_IGNORE);
        atomic_store(&stop, 1);
        pthread_join(thread, NULL);
    }
}

static void run_children(MPI_Comm parents)
{
    MPI_Comm all;
    int rank, pid = getpid(), value = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        MPI_Send(&pid, 1, MPI_INT, 0, 0, parents);
    MPI_Intercomm_create(MPI_COMM_WORLD, 0, parents, 0, 0, &all);
    if (rank == 0)
        MPI_Send(&pid, 1, MPI_INT, 0, 0, parents);
    if (rank == 1) {
        MPI_Recv(&value, 1, MPI_INT, 1, 0, all, MPI_STATUS_IGNORE);
        printf("the first message has arrived: %d\n", value);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm parents;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parents);
    if (parents == MPI_COMM_NULL)
        run_parents(argv[0]);
    else
        run_children(parents);
    MPI_Finalize();
    return 0;
}
