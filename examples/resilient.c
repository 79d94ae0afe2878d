/* resilient.c: a solver that goes on when ranks die. A sum of many terms is worked off in steps; each rank owns some of the
 * terms, and every step ends with an agreement on the partial sum. When a rank dies, the others shrink the communicator,
 * share out its terms and repeat the step: the result is the same as without the deaths.
 *
 * With an argument N the last rank kills itself in every Nth step, as long as more than two are left:
 *
 *     mpicc resilient.c -o resilient -lm
 *     mpiexec -enable-recovery -n 8 ./resilient 20
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS 120
#define TERMS 20000 /* of a step */

static MPI_Comm comm; /* the surviving ranks */
static int rank, size;

static void look_around(void)
{
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
}

/* The survivors continue in a communicator of their own. Revoking first makes every rank come here, also ranks whose own call
 * went well. */
static void repair(void)
{
    MPI_Comm rest;
    MPIX_Comm_revoke(comm);
    MPIX_Comm_shrink(comm, &rest);
    if (comm != MPI_COMM_WORLD)
        MPI_Comm_free(&comm);
    comm = rest;
    look_around();
}

/* This rank's terms of one step: pi/4 = 1 - 1/3 + 1/5 - ... */
static double my_terms(int step)
{
    double sum = 0;
    for (long i = rank; i < TERMS; i += size) {
        long n = (long)step * TERMS + i;
        sum += (n % 2 ? -1.0 : 1.0) / (2.0 * (double)n + 1.0);
    }
    return sum;
}

/* False: a rank has died, and the step must be repeated. All ranks return the same. */
static int solve_step(int step, double *sum)
{
    double mine = my_terms(step);
    int good = MPI_Allreduce(&mine, sum, 1, MPI_DOUBLE, MPI_SUM, comm) == MPI_SUCCESS;
    /* One rank may have its result and another an error: they agree on what to do. */
    int rc = MPIX_Comm_agree(comm, &good);
    return rc == MPI_SUCCESS && good;
}

int main(int argc, char **argv)
{
    int every = argc > 1 ? atoi(argv[1]) : 0, repairs = 0, started, last_kill = -1;
    double total = 0, sum;
    MPI_Init(&argc, &argv);
    comm = MPI_COMM_WORLD;
    look_around();
    started = size;
    for (int step = 0; step < STEPS;) {
        int kill_now = every && step > 0 && step % every == 0 && step != last_kill && size > 2;
        last_kill = kill_now ? step : last_kill;
        if (kill_now && rank == size - 1)
            raise(SIGKILL);
        if (solve_step(step, &sum)) {
            total += sum;
            step++;
        } else {
            repair();
            repairs++;
        }
    }
    if (rank == 0)
        printf("pi is %.6f, off by less than 1e-6: %s; %d of %d ranks are left after %s\n", 4 * total,
               fabs(4 * total - acos(-1.0)) < 1e-6 ? "yes" : "no", size, started,
               repairs ? "repairs" : "no repair");
    if (comm != MPI_COMM_WORLD)
        MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
