/* dead.c: the last rank dies in a barrier that cannot end because rank 0 never enters it, or during
 * broadcasts of rank 1 or of its own. usage: dead blocking|nonblocking|bcast|bcast_root [counter that must
 * show the algorithm]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "counters.h"

enum { BEFORE = 4 };

static void exit_on_alarm(int signal)
{
    (void)signal;
    kill(getpid(), SIGKILL);
}

/* The rank dies after a delay, inside the barrier. On a very slow machine it may die before the barrier; the job
 * must end in this case too. */
static void die_soon(void)
{
    const struct itimerval soon = {.it_value.tv_usec = 30000};
    signal(SIGALRM, exit_on_alarm);
    setitimer(ITIMER_REAL, &soon, NULL);
}

static void test_barrier(int nonblocking)
{
    MPI_Request request;
    if (!nonblocking) {
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Broadcasts in an endless loop, so that the other ranks wait for acknowledgements or data of the dead rank. */
static void test_broadcasts(int root, int from, int until)
{
    static char data[20000];
    for (int i = from; i < until; i++)
        MPI_Bcast(data, 1 + i % (int)sizeof(data), MPI_BYTE, root, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    counters_begin();
    MPI_T_pvar_handle kind = argc > 2 ? counter_open(argv[2]) : NULL;
    const int nonblocking = argc > 1 && strcmp(argv[1], "nonblocking") == 0;
    const int own = argc > 1 && strcmp(argv[1], "bcast_root") == 0;
    const int bcast = own || (argc > 1 && strcmp(argv[1], "bcast") == 0);
    mpitest_begin(&argc, &argv);
    const int root = own ? mpitest_size - 1 : 1;
    if (bcast)
        test_broadcasts(root, 0, BEFORE);
    for (int i = 0; i < BEFORE; i++)
        test_barrier(nonblocking);
    if (kind)
        EXPECT(read_counter(kind) > 0);
    if (mpitest_failures)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (mpitest_rank == mpitest_size - 1)
        die_soon();
    if (bcast)
        test_broadcasts(root, BEFORE, INT_MAX);
    if (mpitest_rank == 0)
        for (;;)
            pause();
    test_barrier(nonblocking);
    fprintf(stderr, "rank %d left a barrier that rank 0 has not entered\n", mpitest_rank);
    MPI_Abort(MPI_COMM_WORLD, 4);
    return 4;
}
