/* pairs.c: each thread exchanges messages with the thread of the same number in the next rank under its
 * own tag, with all kinds of sends and receives and all protocols, while the other threads do the same.
 *
 * ranks: 2 1 3 4 5 8
 * also: FISHPLATE_SPIN_US=0 FISHPLATE_LAB=YIELDS=0
 * also: FISHPLATE_SHM_CMA=0 FISHPLATE_SHM_RING=64k
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "threadtest.h"

enum { ROUNDS = 60, WORDS = 12000 };

static const int lengths[] = {0, 1, 8, 100, 4096, 4097, WORDS};

static long count_wrong_words(const int *in, int n, int value)
{
    long wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += in[i] != value + i;
    return WRONG(wrong != 0);
}

static void *exchange_messages(void *number)
{
    int tag = (int)(long)number, right = (mpitest_rank + 1) % mpitest_size;
    int left = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    int *out = malloc(WORDS * sizeof(int)), *in = malloc(WORDS * sizeof(int));
    long failures = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int n = lengths[i % 7], value = i * 1000 + tag, expected = value, flag = 0;
        MPI_Request r[2];
        MPI_Status s;
        for (int k = 0; k < n; k++)
            out[k] = value + k;
        MPI_Irecv(in, WORDS, MPI_INT, i % 2 ? left : MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &r[0]);
        if (i % 3 == 0) {
            MPI_Send(out, n, MPI_INT, right, tag, MPI_COMM_WORLD);
            MPI_Wait(&r[0], &s);
        } else if (i % 3 == 1) {
            MPI_Issend(out, n, MPI_INT, right, tag, MPI_COMM_WORLD, &r[1]);
            while (!flag)
                MPI_Test(&r[0], &flag, &s);
            MPI_Wait(&r[1], MPI_STATUS_IGNORE);
        } else {
            MPI_Status both[2];
            MPI_Isend(out, n, MPI_INT, right, tag, MPI_COMM_WORLD, &r[1]);
            MPI_Waitall(2, r, both);
            s = both[0];
        }
        failures += WRONG(s.MPI_SOURCE != left || s.MPI_TAG != tag);
        failures += count_wrong_words(in, n, expected);
    }
    free(out);
    free(in);
    return (void *)failures;
}

int main(int argc, char **argv)
{
    threadtest_begin(&argc, &argv);
    threadtest_run(exchange_messages);
    return mpitest_end();
}
