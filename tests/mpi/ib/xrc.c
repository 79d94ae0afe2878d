/* xrc.c: with XRC a process has one initiator queue pair for each other node, and the processes of a node
 * share one target queue pair for each process of other nodes, even if all processes connect at once; and
 * no RC queue pairs exist.
 *
 * ranks: 6
 * nodes: only 3
 * also: FISHPLATE_IB_CONNECT=static
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "counters.h"

enum { NODES = 3 };

static unsigned sum_over_ranks(unsigned value, MPI_Comm comm)
{
    unsigned out;
    MPI_Allreduce(&value, &out, 1, MPI_UNSIGNED, MPI_SUM, comm);
    return out;
}

int main(int argc, char **argv)
{
    int me, n, local;
    setenv("FISHPLATE_IB_RECEIVE", "xrc", 1);
    counters_begin();
    MPI_T_pvar_handle initiators = counter_open("ib_xrc_initiators");
    MPI_T_pvar_handle targets = counter_open("ib_xrc_targets");
    MPI_T_pvar_handle rc = counter_open("ib_queue_pairs");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &local);

    int *out = malloc((size_t)n * sizeof(int)), *in = malloc((size_t)n * sizeof(int));
    MPI_Request *requests = malloc(2 * (size_t)n * sizeof(MPI_Request));
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < n; i++) {
            out[i] = 1000 * round + 10 * me + i;
            MPI_Irecv(&in[i], 1, MPI_INT, i, round, MPI_COMM_WORLD, &requests[i]);
        }
        for (int i = 0; i < n; i++)
            MPI_Isend(&out[i], 1, MPI_INT, (i + me) % n, round, MPI_COMM_WORLD, &requests[n + i]);
        MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i++)
            EXPECT_EQ(in[i], 1000 * round + 10 * i + (n + me - i) % n);
    }

    EXPECT_EQ(read_counter(rc), 0);
    EXPECT_EQ(read_counter(initiators), NODES - 1);
    EXPECT_EQ(sum_over_ranks((unsigned)read_counter(targets), node), (unsigned)(n - local));
    free(requests);
    free(in);
    free(out);
    MPI_Comm_free(&node);
    counters_end();
    return mpitest_end();
}
