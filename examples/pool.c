/* pool.c: a growing pool of workers. Rank 0 has a list of tasks. It spawns two workers, two more when a quarter of
 * the tasks is done, and ends the workers after the last task. Workers run the same program.
 *
 *     mpicc pool.c -o pool
 *     mpiexec -n 1 ./pool
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TASK, RESULT, HOME };

#define CREW  2
#define TASKS 24

/* Workers that were spawned together and end together. */
struct crew {
    MPI_Comm comm;
    int task[CREW]; /* task of each worker; -1: idle */
};

static void run_worker(MPI_Comm boss)
{
    for (;;) {
        long n, sum = 0;
        MPI_Status status;
        MPI_Recv(&n, 1, MPI_LONG, 0, MPI_ANY_TAG, boss, &status);
        if (status.MPI_TAG == HOME)
            break;
        for (long i = 1; i <= n; i++)
            sum += i * i;
        MPI_Send(&sum, 1, MPI_LONG, 0, RESULT, boss);
    }
    MPI_Comm_disconnect(&boss);
}

static void spawn_crew(struct crew *c, const char *program)
{
    MPI_Comm_spawn(program, MPI_ARGV_NULL, CREW, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c->comm,
                   MPI_ERRCODES_IGNORE);
    for (int i = 0; i < CREW; i++)
        c->task[i] = -1;
}

static void stop_crew(struct crew *c)
{
    for (int i = 0; i < CREW; i++)
        MPI_Send(&(long){0}, 1, MPI_LONG, i, HOME, c->comm);
    MPI_Comm_disconnect(&c->comm);
}

/* Sends tasks to idle workers and receives results; returns the number of results. */
static int serve_crew(struct crew *c, int *next, long *results)
{
    int done = 0;
    for (int i = 0; i < CREW; i++) {
        int there = 0;
        if (c->task[i] >= 0)
            MPI_Iprobe(i, RESULT, c->comm, &there, MPI_STATUS_IGNORE);
        if (there) {
            MPI_Recv(&results[c->task[i]], 1, MPI_LONG, i, RESULT, c->comm, MPI_STATUS_IGNORE);
            c->task[i] = -1;
            done++;
        }
        if (c->task[i] < 0 && *next < TASKS) {
            long n = 1000L * (*next + 1);
            c->task[i] = (*next)++;
            MPI_Send(&n, 1, MPI_LONG, i, TASK, c->comm);
        }
    }
    return done;
}

static void run_manager(const char *program)
{
    struct crew first, second;
    long results[TASKS], total = 0;
    int next = 0, done = 0, crews = 1;
    spawn_crew(&first, program);
    while (done < TASKS) {
        if (crews == 1 && done >= TASKS / 4 && next < TASKS) {
            spawn_crew(&second, program);
            crews = 2;
        }
        done += serve_crew(&first, &next, results);
        if (crews == 2)
            done += serve_crew(&second, &next, results);
    }
    for (int i = 0; i < TASKS; i++)
        total += results[i] % 1000003;
    if (crews == 2)
        stop_crew(&second);
    stop_crew(&first);
    printf("%d tasks are done, the checksum is %ld\n", TASKS, total);
}

int main(int argc, char **argv)
{
    MPI_Comm boss;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&boss);
    if (boss != MPI_COMM_NULL)
        run_worker(boss);
    else if (rank == 0)
        run_manager(argv[0]);
    MPI_Finalize();
    return 0;
}
