/* multicast_trial.c: after some broadcasts, allgathers and allreduces a communicator on several nodes tries whether multicast is faster. All
 * ranks come to the same end, every byte arrives before, during and after the trial, nonblocking broadcasts are under way meanwhile, and a
 * communicator on two nodes does not try. MPI_T says what was found. With a small share of the time, communicators are freed in the middle of a trial.
 *
 * ranks: 6
 * nodes: only 3
 * env: FISHPLATE_COLL=bcast=multicast:try=1:aggregate=10 FISHPLATE_COLL_TRY=100
 * also: FISHPLATE_COLL_TRY=2
 * also: FISHPLATE_COLL_TRY=0
 * also: FISHPLATE_COLL=allreduce=multicast:try=1 SOFTIB_FABRIC=ud_drop=0.1,seed=4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "late.h"

enum { CALLS = 40, MOST = 100000 };

static const int sizes[] = {1, 256, 5000, 60000, MOST};
static unsigned char data[MOST], other[MOST];

static unsigned char byte_of(int call, int i)
{
    return (unsigned char)(call * 7 + i * 3 + (i >> 8));
}

static void fill(unsigned char *b, int call, int n, int is_root)
{
    for (int i = 0; i < n; i++)
        b[i] = is_root ? byte_of(call, i) : 0;
}

static void check(const unsigned char *b, int call, int n)
{
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += b[i] != byte_of(call, i);
    EXPECT_EQ(wrong, 0);
}

static void all_of(MPI_Comm comm, int rank, int size, int call)
{
    int ranks[64], sum;
    const int mine = rank + call;
    MPI_Allgather(&mine, 1, MPI_INT, ranks, 1, MPI_INT, comm);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    for (int r = 0; r < size; r++)
        EXPECT_EQ(ranks[r], r + call);
    EXPECT_EQ(sum, size * call + size * (size - 1) / 2);
}

static void broadcasts(MPI_Comm comm, unsigned *dice)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int call = 0; call < CALLS; call++) {
        const int n = sizes[call % 5], root = call % size;
        MPI_Request request;
        fill(data, call, n, rank == root);
        fill(other, call + 1, 3000, rank == 0);
        MPI_Ibcast(other, 3000, MPI_BYTE, 0, comm, &request);
        be_late(dice);
        MPI_Bcast(data, n, MPI_BYTE, root, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        all_of(comm, rank, size, call);
        check(data, call, n);
        check(other, call + 1, 3000);
    }
}

/* The same at all ranks of the world. */
static void agree(unsigned long long value)
{
    unsigned long long ends[2] = {value, ~value};
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    EXPECT_EQ(ends[0], ~ends[1]);
}

/* What people read: of each kind that was tried the sizes that go by multicast, and the times of both ways. It must say what is done. */
static void check_text(unsigned long long trials, unsigned long long won)
{
    static char text[16000];
    MPI_T_pvar_handle handle;
    int index, count = 0;
    unsigned told = 0, told_won = 0;
    EXPECT_EQ(MPI_T_pvar_get_index("coll_choices", MPI_T_PVAR_CLASS_GENERIC, &index), MPI_SUCCESS);
    MPI_T_pvar_handle_alloc(counters_session, index, NULL, &handle, &count);
    EXPECT(count > 0 && count < (int)sizeof(text));
    EXPECT_EQ(MPI_T_pvar_read(counters_session, handle, text), MPI_SUCCESS);
    MPI_T_pvar_handle_free(counters_session, &handle);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const char *limits = strstr(line, ", 6 ranks on 3 nodes: "),
                   *times = strstr(line, "by multicast or not");
        told += !times && limits && strstr(limits, "by multicast");
        told_won += !times && limits && strstr(limits, ": by multicast ");
        EXPECT(!times || strstr(times, "; tried rule:"));
        EXPECT(!times || !strstr(times, "nodes: multicast,") || strstr(times, " multicast "));
    }
    EXPECT_EQ(told, trials);
    EXPECT_EQ(told_won, won);
}

int main(int argc, char **argv)
{
    const char *text = getenv("FISHPLATE_COLL_TRY");
    const int share = text ? atoi(text) : 0;
    const char *coll = getenv("FISHPLATE_COLL");
    const unsigned kinds = coll && strstr(coll, "allreduce") ? 3 : 2; /* sums only when asked for */
    counters_begin();
    MPI_T_pvar_handle trials = counter_open("coll_multicast_trials"),
                      won = counter_open("coll_multicast_trials_won"),
                      multicasts = counter_open("coll_bcast_multicast");
    mpitest_begin(&argc, &argv);
    unsigned dice = 7u + (unsigned)mpitest_rank;
    for (int round = 0; round < 2; round++) {
        MPI_Comm twin, two;
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        MPI_Comm_split(MPI_COMM_WORLD, mpitest_rank < 4 ? 0 : MPI_UNDEFINED, 0, &two);
        broadcasts(twin, &dice);
        agree(counter(trials));
        agree(counter(won));
        const unsigned long long before = counter(trials);
        if (share == 100)
            EXPECT_EQ(
                before,
                kinds *
                    (unsigned)(round + 1)); /* on a machine that is busy enough, before multicast was tried */
        if (round == 0)
            check_text(before, counter(won));
        if (share == 0)
            EXPECT(before == 0 && counter(multicasts) == 0);
        if (two != MPI_COMM_NULL) {
            broadcasts(two, &dice);
            EXPECT_EQ(counter(trials), before);
            MPI_Comm_free(&two);
        }
        MPI_Comm_free(&twin);
    }
    counters_end();
    return mpitest_end();
}
