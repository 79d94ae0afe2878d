/* probe_race.c: several threads probe for the same messages; a matched probe gives each message to exactly
 * one thread.
 *
 * ranks: 2 3
 * also: FISHPLATE_SPIN_US=0 FISHPLATE_EAGER_MAX=64
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "threadtest.h"

enum { EACH = 200, WORDS = 6000 }; /* messages for each receiving thread, from each sender */

static int seen[16][THREADS * EACH]; /* times received, by sender and message number */

static void *receive_by_mprobe(void *number)
{
    int *words = malloc(WORDS * sizeof(int));
    long failures = 0;
    int me = (int)(long)number;
    for (int i = 0; i < EACH * (mpitest_size - 1); i++) {
        MPI_Message m = MPI_MESSAGE_NULL;
        MPI_Status s;
        int count = 0, flag = 0;
        if (me % 2)
            MPI_Mprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &m, &s);
        else
            while (!flag)
                MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &m, &s);
        MPI_Get_count(&s, MPI_INT, &count);
        MPI_Mrecv(words, count, MPI_INT, &m, MPI_STATUS_IGNORE);
        int n = words[0];
        failures += WRONG(n < 0 || n >= THREADS * EACH || words[count - 1] != n);
        seen[s.MPI_SOURCE][n]++;
    }
    free(words);
    return (void *)failures;
}

static void send_all_messages(void)
{
    static const int lengths[] = {1, 2, 50, WORDS};
    int *words = malloc(WORDS * sizeof(int));
    for (int n = 0; n < THREADS * EACH; n++) {
        int length = lengths[n % 4];
        words[0] = words[length - 1] = n;
        MPI_Send(words, length, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
    free(words);
}

int main(int argc, char **argv)
{
    threadtest_begin(&argc, &argv);
    if (mpitest_rank != 0) {
        send_all_messages();
    } else {
        threadtest_run(receive_by_mprobe);
        for (int r = 1; r < mpitest_size; r++)
            for (int n = 0; n < THREADS * EACH; n++)
                EXPECT_EQ(seen[r][n], 1);
    }
    return mpitest_end();
}
