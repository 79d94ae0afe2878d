/* stop.c: ends the tuning when its time is over or the user stops it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>

#include "tune.h"

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
    (void)sig;
    stopped = 1;
}

/* Catches SIGINT and SIGTERM. mpiexec forwards Ctrl-C; the ranks then have some seconds to write results. */
void tune_catch_stop(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool tune_was_stopped(void)
{
    return stopped;
}

bool tune_is_over(struct tune *t)
{
    int over = t->over || stopped || MPI_Wtime() > t->end;
    MPI_Bcast(&over, 1, MPI_INT, 0, t->bench.comm);
    t->over = over;
    return over;
}
