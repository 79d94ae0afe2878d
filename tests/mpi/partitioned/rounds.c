/* rounds.c: partitioned messages with equal and different numbers of partitions on the two sides, of many
 * sizes, over several rounds, with partitions marked ready in any order, singly, by range and by list.
 * ranks: 1 2 3 4 5 8
 * also: FISHPLATE_LAB=PARTITION_TOGETHER=0
 * also: FISHPLATE_EAGER_MAX=64
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

#define ROUNDS 4

static int value_at(int round, int i)
{
    return round * 1000003 + i * 7 + 1;
}

static void make_ready(MPI_Request request, int n, int round)
{
    if (round % 4 == 0) {
        for (int i = n - 1; i >= 0; i--)
            MPI_Pready(i, request);
    } else if (round % 4 == 1) {
        MPI_Pready_range(0, n - 1, request);
    } else {
        int *list = malloc((size_t)n * sizeof(int));
        int k = 0;
        for (int i = 1; i < n; i += 2)
            list[k++] = i;
        for (int i = 0; i < n; i += 2)
            list[k++] = i;
        MPI_Pready_list(n, list, request);
        free(list);
    }
}

static void check_partition(const int *buf, int q, int count, int round)
{
    for (int i = q * count; i < (q + 1) * count; i++)
        EXPECT_EQ(buf[i], value_at(round, i));
}

/* Every rank sends a partitioned message to its right neighbour. */
static void exchange_partitions(int sparts, int rparts, int total)
{
    int right = (mpitest_rank + 1) % mpitest_size, left = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    int *out = malloc((size_t)(total + 1) * sizeof(int)), *in = malloc((size_t)(total + 1) * sizeof(int));
    MPI_Request r[2];
    MPI_Psend_init(out, sparts, total / sparts, MPI_INT, right, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
    MPI_Precv_init(in, rparts, total / rparts, MPI_INT, left, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < total; i++) {
            out[i] = value_at(round, i);
            in[i] = -1;
        }
        MPI_Startall(2, r);
        make_ready(r[0], sparts, round);
        for (int q = 0; round % 2 && q < rparts; q++) {
            int flag = 0;
            while (!flag)
                MPI_Parrived(r[1], q, &flag);
            check_partition(in, q, total / rparts, round);
        }
        MPI_Status status[2];
        int count;
        MPI_Waitall(2, r, status);
        for (int q = 0; q < rparts; q++)
            check_partition(in, q, total / rparts, round);
        EXPECT_EQ(status[1].MPI_SOURCE, left);
        EXPECT_EQ(status[1].MPI_TAG, 5);
        MPI_Get_count(&status[1], MPI_INT, &count);
        EXPECT_EQ(count, total);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    EXPECT(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    static const int parts[] = {1, 2, 3, 4, 6, 12, 60};
    static const int totals[] = {0, 60, 600, 12000, 240000};
    mpitest_begin(&argc, &argv);
    for (int t = 0; t < 5; t++)
        for (int s = 0; s < 7; s++)
            for (int r = 0; r < 7; r++)
                if ((totals[t] < 100000 || (s + r) % 3 == 0) && (mpitest_size < 4 || (s + r + t) % 4 == 0))
                    exchange_partitions(parts[s], parts[r], totals[t]);
    return mpitest_end();
}
