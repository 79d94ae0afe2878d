/* resilient.c: a solver that continues when ranks die. It adds many terms in steps; each rank computes some
 * terms, and every step ends with an agreement on the partial sum. When a rank dies, the others shrink the
 * communicator, divide its terms among themselves and repeat the step: the result is the same as without
 * deaths.
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
#define TERMS 20000 /* terms per step */

static MPI_Comm comm; /* the surviving ranks */
static int rank, size;

static void query_communicator(void)
{
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
}

/* Shrinks the communicator to the survivors. Revoking first makes every rank come here, also ranks whose
 * own call succeeded. */
static void repair_communicator(void)
{
    MPI_Comm rest;
    MPIX_Comm_revoke(comm);
    MPIX_Comm_shrink(comm, &rest);
    if (comm != MPI_COMM_WORLD)
        MPI_Comm_free(&comm);
    comm = rest;
    query_communicator();
}

/* This rank's terms of one step: pi/4 = 1 - 1/3 + 1/5 - ... */
static double sum_own_terms(int step)
{
    double sum = 0;
    for (long i = rank; i < TERMS; i += size) {
        long n = (long)step * TERMS + i;
        sum += (n % 2 ? -1.0 : 1.0) / (2.0 * (double)n + 1.0);
    }
    return sum;
}

/* Adds the terms of one step. False on all ranks if a rank has died and the step must be repeated. */
static int solve_step(int step, double *sum)
{
    double mine = sum_own_terms(step);
    int good = MPI_Allreduce(&mine, sum, 1, MPI_DOUBLE, MPI_SUM, comm) == MPI_SUCCESS;
    /* The allreduce may succeed on one rank and fail on another: the ranks agree on the outcome. */
    int rc = MPIX_Comm_agree(comm, &good);
    return rc == MPI_SUCCESS && good;
}

int main(int argc, char **argv)
{
    int every = argc > 1 ? atoi(argv[1]) : 0, repairs = 0, started, last_kill = -1;
    double total = 0, sum;
    MPI_Init(&argc, &argv);
    comm = MPI_COMM_WORLD;
    query_communicator();
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
            repair_communicator();
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
