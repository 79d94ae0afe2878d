/* order.c: messages of one sender are received in order for all sizes and protocols, by receives with and
 * without wildcards, posted before or after the messages arrive; messages on different communicators are
 * independent.
 *
 * ranks: 3 2 4 8
 * also: FISHPLATE_SHM_CMA=0
 * also: FISHPLATE_EAGER_MAX=64 FISHPLATE_SHM_RING=64k FISHPLATE_LAB=SHM_FRAME=1k
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum { MESSAGES = 120, WORDS_MAX = 6000 };

static const int lengths[] = {1, 3, 9, 17, 300, 4096, 4097, 6000};

static int message_length(int number)
{
    return lengths[number * 5 % 8];
}

static void send_all_messages(MPI_Comm comm)
{
    static int words[MESSAGES][WORDS_MAX];
    MPI_Request requests[MESSAGES];
    for (int n = 0; n < MESSAGES; n++) {
        for (int i = 0; i < message_length(n); i++)
            words[n][i] = n;
        MPI_Isend(words[n], message_length(n), MPI_INT, 0, n % 4, comm, &requests[n]);
    }
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
}

/* Rank 0 receives all messages with the given wildcards and checks that messages of one source and tag
 * arrive in order. */
static void receive_all_messages(MPI_Comm comm, int any_source, int any_tag, int prepost)
{
    int senders = mpitest_size - 1, total = senders * MESSAGES;
    int *last = malloc((size_t)mpitest_size * 4 * sizeof(int));
    int(*words)[WORDS_MAX] = malloc((size_t)total * sizeof(*words));
    MPI_Request *requests = malloc((size_t)total * sizeof(*requests));
    for (int i = 0; i < mpitest_size * 4; i++)
        last[i] = -1;
    for (int i = 0; i < total; i++)
        MPI_Irecv(words[i], WORDS_MAX, MPI_INT, any_source ? MPI_ANY_SOURCE : 1 + i % senders,
                  any_tag ? MPI_ANY_TAG : i / senders % 4, comm, &requests[i]);
    if (prepost)
        MPI_Barrier(comm);
    for (int i = 0; i < total; i++) {
        MPI_Status status;
        int count;
        MPI_Wait(&requests[i], &status);
        int number = words[i][0], *before = &last[status.MPI_SOURCE * 4 + status.MPI_TAG];
        MPI_Get_count(&status, MPI_INT, &count);
        EXPECT_EQ(count, message_length(number));
        EXPECT_EQ(words[i][count - 1], number);
        EXPECT_EQ(number % 4, status.MPI_TAG);
        EXPECT_EQ(number, *before < 0 ? status.MPI_TAG : *before + 4);
        if (!any_source)
            EXPECT_EQ(status.MPI_SOURCE, 1 + i % senders);
        *before = number;
    }
    free(requests);
    free(words);
    free(last);
}

static void run_round(MPI_Comm comm, int any_source, int any_tag, int prepost)
{
    if (mpitest_rank == 0) {
        if (!prepost)
            MPI_Barrier(comm);
        receive_all_messages(comm, any_source, any_tag, prepost);
    } else {
        MPI_Barrier(comm);
        send_all_messages(comm);
    }
    MPI_Barrier(comm);
}

/* Messages with the same tag on two communicators are received in reverse order. */
static void test_communicators(MPI_Comm other)
{
    int a = 1, b = 2;
    if (mpitest_rank == 1) {
        MPI_Send(&a, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
        MPI_Send(&b, 1, MPI_INT, 0, 7, other);
    } else if (mpitest_rank == 0) {
        int got = 0;
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, MPI_STATUS_IGNORE);
        EXPECT_EQ(got, 2);
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQ(got, 1);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm other;
    mpitest_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (int way = 0; way < 8; way++)
        run_round(way & 1 ? other : MPI_COMM_WORLD, way & 1, way >> 1 & 1, way >> 2);
    test_communicators(other);
    MPI_Comm_free(&other);
    return mpitest_end();
}
