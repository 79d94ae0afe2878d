/* farm.c: a task farm. Rank 0 sends tasks to the others, one at a time, so that a slow rank or an expensive
 * task delays no other rank. The tasks: find the number that needs most steps to reach 1 if it is halved
 * when even, and tripled plus one when odd. The distribution of tasks changes from run to run; the result
 * does not.
 *
 *     mpicc farm.c -o farm
 *     mpiexec -n 4 ./farm
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>

enum { TASKS = 120, TASK_SIZE = 2500 };
enum { TAG_WORK, TAG_RESULT, TAG_STOP }; /* tags: the purpose of a message */

struct result {
    long number, steps;
};

static long count_steps(long n)
{
    long steps = 0;
    for (; n != 1; steps++)
        n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

static struct result do_task(int task)
{
    struct result best = {0, -1};
    const long first = 1 + (long)task * TASK_SIZE;
    for (long n = first; n < first + TASK_SIZE; n++) {
        long steps = count_steps(n);
        if (steps > best.steps)
            best = (struct result){n, steps};
    }
    return best;
}

/* Keeps the better result. Of equal results the smaller number wins, so that the order does not matter. */
static void update_best(struct result *best, const struct result *r)
{
    if (r->steps > best->steps || (r->steps == best->steps && r->number < best->number))
        *best = *r;
}

static struct result run_farmer(int workers)
{
    struct result best = {0, -1}, r;
    int task = 0, busy = 0;

    /* Send one task to each worker; workers without a task are stopped at once. */
    for (int w = 1; w <= workers; w++, task++) {
        MPI_Send(&task, 1, MPI_INT, w, task < TASKS ? TAG_WORK : TAG_STOP, MPI_COMM_WORLD);
        busy += task < TASKS;
    }
    /* Receive the next result from any worker and send that worker the next task. */
    while (busy > 0) {
        MPI_Status status;
        MPI_Recv(&r, 2, MPI_LONG, MPI_ANY_SOURCE, TAG_RESULT, MPI_COMM_WORLD, &status);
        update_best(&best, &r);
        if (task >= TASKS)
            busy--;
        MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, task < TASKS ? TAG_WORK : TAG_STOP, MPI_COMM_WORLD);
        task++;
    }
    /* Without workers, rank 0 does all tasks. */
    for (; workers == 0 && task < TASKS; task++) {
        r = do_task(task);
        update_best(&best, &r);
    }
    return best;
}

static void run_worker(void)
{
    for (;;) {
        int task;
        MPI_Status status;
        MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == TAG_STOP)
            return;
        struct result r = do_task(task);
        MPI_Send(&r, 2, MPI_LONG, 0, TAG_RESULT, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        struct result best = run_farmer(size - 1);
        printf("%d tasks: of the numbers up to %d, %ld takes longest: %ld steps\n", TASKS, TASKS * TASK_SIZE,
               best.number, best.steps);
    } else {
        run_worker();
    }
    MPI_Finalize();
    return 0;
}
