/* team.c: begins and ends a test on the first ranks. The other ranks sleep and check every few milliseconds
 * whether the test has ended, so that they do not disturb it however the library waits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "bench.h"

enum { TAG_WAKE = 77 };

static void sleep_until_woken(struct bench *b)
{
    struct timespec nap = {.tv_nsec = 4000000};
    int flag = 0;
    for (;;) {
        MPI_Iprobe(0, TAG_WAKE, b->comm, &flag, MPI_STATUS_IGNORE);
        if (flag)
            break;
        nanosleep(&nap, NULL);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_WAKE, b->comm, MPI_STATUS_IGNORE);
}

void bench_team_begin(struct bench *b, int active)
{
    MPI_Comm_split(b->comm, b->rank < active ? 0 : MPI_UNDEFINED, b->rank, &b->team);
    MPI_Barrier(b->comm);
    if (b->rank < active)
        bench_pin(b, active);
    else
        sleep_until_woken(b);
}

void bench_team_end(struct bench *b)
{
    if (b->team != MPI_COMM_NULL) {
        bench_unpin(b);
        int active;
        MPI_Comm_size(b->team, &active);
        if (b->rank == 0)
            for (int r = active; r < b->size; r++)
                MPI_Send(NULL, 0, MPI_BYTE, r, TAG_WAKE, b->comm);
        MPI_Comm_free(&b->team);
    }
    MPI_Barrier(b->comm);
}
