/* trial.c: after some barriers a communicator on several nodes tries which one is fastest. All ranks come to the same end,
 * nobody is early meanwhile, what was found serves the next communicator of the shape, and one in which only some ranks know
 * it tries again. A communicator that is duplicated and not used costs no trial. With a small share of the time, trials go on
 * over many barriers, and communicators are freed in the middle of one. MPI_COMM_WORLD tries the wires of a barrier network too, which others
 * cannot have: they do not take over what it found.
 *
 * ranks: 6
 * nodes: only 3
 * env: FISHPLATE_COLL_TRY=100
 * also: FISHPLATE_COLL_TRY=2
 * also: FISHPLATE_COLL_TRY=0
 * also: FISHPLATE_COLL_TRY=100 SOFTIB_FABRIC=hub=1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "late.h"

enum { BARRIERS = 32, AT = 24 };

static MPI_T_pvar_handle trials, saved;
static double came[BARRIERS], left[BARRIERS];

/* Nonblocking ones in between must not notice; one stays under way while the trial runs. */
static void barriers(MPI_Comm comm, unsigned *dice)
{
    MPI_Request early = MPI_REQUEST_NULL;
    for (int i = 0; i < BARRIERS; i++) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (i % 7 == 0)
            MPI_Ibarrier(comm, i == 21 ? &early : &request);
        be_late(dice);
        came[i] = now();
        MPI_Barrier(comm);
        left[i] = now();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&early, MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, came, BARRIERS, MPI_DOUBLE, MPI_MAX, comm);
    for (int i = 0; i < BARRIERS; i++)
        EXPECT(left[i] >= came[i]);
}

/* -1: as many as the time allows. */
static void check(MPI_Comm comm, unsigned *dice, int tries, int saves)
{
    const unsigned long long t = counter(trials), s = counter(saved);
    for (int i = 0; i < (tries < 0 ? 2 : 1); i++)
        barriers(comm, dice);
    EXPECT(tries < 0 ? counter(trials) - t <= 1 : counter(trials) - t == (unsigned)tries);
    EXPECT(saves < 0 ? counter(saved) - s <= 1 : counter(saved) - s == (unsigned)saves);
}

int main(int argc, char **argv)
{
    MPI_Comm twin, three, other;
    const char *text = getenv("FISHPLATE_COLL_TRY");
    const int wired = getenv("SOFTIB_FABRIC") && strstr(getenv("SOFTIB_FABRIC"), "hub=1");
    const int on = text && atoi(text) == 100 ? 1 : text && atoi(text) == 0 ? 0 : -1;
    counters_begin();
    trials = counter_open("coll_trials");
    saved = counter_open("coll_trials_saved");
    MPI_T_pvar_handle wires = counter_open("coll_wired");
    mpitest_begin(&argc, &argv);
    unsigned dice = 5u + (unsigned)mpitest_rank;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    for (int i = 0; i < AT - 1; i++)
        MPI_Barrier(twin);
    EXPECT_EQ(counter(trials), 0); /* not before it is used */
    check(MPI_COMM_WORLD, &dice, on, 0);
    EXPECT_EQ(counter(wires) > 0, wired);
    check(twin, &dice, on < 0 ? -1 : wired, wired ? 0 : on);
    MPI_Comm_free(&twin);

    /* A rank of each node, first one half of the world, then the other; then three of which two know the shape. */
    MPI_Comm_split(MPI_COMM_WORLD, mpitest_rank % 2, 0, &three);
    if (mpitest_rank % 2 == 0)
        check(three, &dice, on, 0);
    MPI_Comm_free(&three);
    MPI_Comm_split(MPI_COMM_WORLD,
                   mpitest_rank == 0 || mpitest_rank == 2 || mpitest_rank == 5 ? 0 : MPI_UNDEFINED, 0,
                   &other);
    if (other != MPI_COMM_NULL) {
        check(other, &dice, on, on < 0 ? -1 : 0);
        check(other, &dice, on < 0 ? -1 : 0, on < 0 ? -1 : 0); /* done once for each communicator */
        MPI_Comm_free(&other);
    }
    int rc = mpitest_end();
    counters_end();
    return rc;
}
