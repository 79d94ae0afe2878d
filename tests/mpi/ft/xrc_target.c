/* xrc_target.c: with XRC the process that created the target queue pairs of its node dies while other
 * processes receive through them. Every message between the survivors arrives, and a survivor creates new
 * targets.
 *
 * ranks: 6
 * nodes: only 2
 * env: FISHPLATE_IB_TIMEOUT=10
 * mpiexec: -enable-recovery
 * also: FISHPLATE_IB_BUFFERS=2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"
#include "ft/ft.h"

enum { HALF = 3, ROUNDS = 60, DEATH = 20, SIZES = 3, TAG_GO = 90 };

static const int sizes[SIZES] = {8, 5000, 200000};
static unsigned char *out[HALF][SIZES], *in[HALF][SIZES];

static unsigned char message_byte(int from, int round, int i)
{
    return (unsigned char)(from * 31 + round * 7 + i * 3 + (i >> 8));
}

/* Ranks 0-2 are on node 0, ranks 3-5 on node 1. Returns the number of peers on the other node that live
 * until the end. */
static int count_living_peers(int *first)
{
    *first = rank < HALF ? HALF : 0;
    return rank < HALF ? HALF - 1 : HALF;
}

static void exchange_messages(int round)
{
    MPI_Request requests[2 * HALF * SIZES];
    int first, n = 0;
    const int count = count_living_peers(&first);
    for (int p = 0; p < count; p++)
        for (int k = 0; k < SIZES; k++) {
            memset(in[p][k], 0, (size_t)sizes[k]);
            for (int i = 0; i < sizes[k]; i++)
                out[p][k][i] = message_byte(rank, round, i);
            MPI_Irecv(in[p][k], sizes[k], MPI_BYTE, first + p, k, now, &requests[n++]);
            MPI_Isend(out[p][k], sizes[k], MPI_BYTE, first + p, k, now, &requests[n++]);
        }
    /* The messages of this round are in flight when the creator dies. */
    if (round == DEATH && rank == 0)
        MPI_Send(&round, 1, MPI_INT, victim, TAG_GO, now);
    EXPECT_CLASS(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    for (int p = 0; p < count; p++)
        for (int k = 0; k < SIZES; k++) {
            int wrong = 0;
            for (int i = 0; i < sizes[k]; i++)
                wrong += in[p][k][i] != message_byte(first + p, round, i);
            EXPECT_EQ(wrong, 0);
        }
}

/* Rank 5 is the first process of node 1 that receives from each process of node 0: it creates all targets
 * there. */
static void create_all_targets(MPI_T_pvar_handle targets)
{
    int x = 0;
    if (rank == victim) {
        for (int r = 0; r < HALF; r++) {
            MPI_Recv(&x, 1, MPI_INT, r, 0, now, MPI_STATUS_IGNORE);
            MPI_Send(&x, 1, MPI_INT, r, 0, now);
        }
        EXPECT_EQ(read_counter(targets), HALF);
        for (int r = HALF; r < victim; r++)
            MPI_Send(&x, 1, MPI_INT, r, 0, now);
    } else if (rank < HALF) {
        MPI_Send(&x, 1, MPI_INT, victim, 0, now);
        MPI_Recv(&x, 1, MPI_INT, victim, 0, now, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&x, 1, MPI_INT, victim, 0, now, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int x;
    setenv("FISHPLATE_IB_RECEIVE", "xrc", 1);
    counters_begin();
    MPI_T_pvar_handle targets = counter_open("ib_xrc_targets");
    mpitest_begin(&argc, &argv);
    now = MPI_COMM_WORLD;
    update_rank_and_size();
    for (int p = 0; p < HALF; p++)
        for (int k = 0; k < SIZES; k++) {
            out[p][k] = malloc((size_t)sizes[k]);
            in[p][k] = malloc((size_t)sizes[k]);
        }
    create_all_targets(targets);
    if (rank == victim) {
        MPI_Recv(&x, 1, MPI_INT, 0, TAG_GO, now, MPI_STATUS_IGNORE);
        kill_this_rank();
    }
    for (int round = 0; round < ROUNDS; round++) {
        /* Checked one round before the death: rank 0 may be a round ahead of this rank, and the creator dies
         * in round DEATH. */
        if (round == DEATH - 1)
            EXPECT_EQ(rank < HALF || read_counter(targets) == 0, 1);
        exchange_messages(round);
    }
    EXPECT_DEATH(MPI_Recv(&x, 1, MPI_INT, victim, 1, now, MPI_STATUS_IGNORE));
    for (int round = ROUNDS; round < ROUNDS + 5; round++)
        exchange_messages(round);
    shrink_to_survivors();
    const int created = rank >= HALF ? (int)read_counter(targets) : 0;
    int sum = 0;
    EXPECT_CLASS(MPI_Allreduce(&created, &sum, 1, MPI_INT, MPI_SUM, now), MPI_SUCCESS);
    EXPECT(sum >= HALF);
    for (int p = 0; p < HALF; p++)
        for (int k = 0; k < SIZES; k++) {
            free(out[p][k]);
            free(in[p][k]);
        }
    counters_end();
    return finalize_and_get_status();
}
