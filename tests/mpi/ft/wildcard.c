/* wildcard.c: receives from any source while a sender dies. In each phase all other ranks send messages of
 * 160 kB to rank 0, and the last rank dies after a random number of them. Rank 0 has several receives
 * posted and completes them with MPI_Wait, MPI_Waitany, MPI_Waitall or MPI_Test; when a call returns
 * MPIX_ERR_PROC_FAILED_PENDING, rank 0 acknowledges the failure and continues. A receive that succeeds has
 * all bytes of its message, and messages of one sender match in the order of the receives.
 *
 * ranks: 6
 * nodes: 6
 * mpiexec: -enable-recovery
 * also: WILDCARD_SEED=2
 * also: WILDCARD_SEED=3
 * also: FISHPLATE_SHM_CMA=0 WILDCARD_SEED=4
 * on nodes: FISHPLATE_RENDEZVOUS=rput WILDCARD_SEED=5
 * on nodes: FISHPLATE_RENDEZVOUS=getcqe WILDCARD_SEED=6
 * on nodes: FISHPLATE_RENDEZVOUS=get WILDCARD_SEED=7
 * on nodes: FISHPLATE_RENDEZVOUS=split WILDCARD_SEED=8
 * on nodes: FISHPLATE_RENDEZVOUS=pipe WILDCARD_SEED=9
 * on nodes: FISHPLATE_RENDEZVOUS=r3 WILDCARD_SEED=10
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

#define WORDS    20000 /* number of 8-byte words: 160 kB */
#define MESSAGES 30
#define RECEIVES 4

enum { TAG_DATA, TAG_LAST };

static uint32_t seed;
static long long receive_buffers[RECEIVES][WORDS], message[WORDS];
static MPI_Request receives[RECEIVES];
static long long posted[RECEIVES]; /* sequence number of each receive */
static long long nposted, newest[6], newest_post[6];
static int nlast, npending;

static uint32_t wildcard_random_choice(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static long long message_word(int source, int number, int i)
{
    return (long long)source << 48 | (long long)number << 32 | i;
}

static void send_all_messages(int dies_after)
{
    for (int n = 0; n < MESSAGES; n++) {
        MPI_Request r;
        for (int i = 0; i < WORDS; i++)
            message[i] = message_word(rank, n, i);
        if (rank == victim && n == dies_after) {
            MPI_Isend(message, WORDS, MPI_LONG_LONG, 0, TAG_DATA, now, &r);
            kill_this_rank();
        }
        EXPECT_CLASS(MPI_Send(message, WORDS, MPI_LONG_LONG, 0, TAG_DATA, now), MPI_SUCCESS);
    }
    EXPECT_CLASS(MPI_Send(message, 0, MPI_LONG_LONG, 0, TAG_LAST, now), MPI_SUCCESS);
}

static void post_receive(int i)
{
    posted[i] = nposted++;
    MPI_Irecv(receive_buffers[i], WORDS, MPI_LONG_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, now, &receives[i]);
}

/* Checks that the buffer holds one whole message and no part of an earlier one. Receives may complete in
 * another order than they match. */
static void check_message(int i, const MPI_Status *status)
{
    const int source = status->MPI_SOURCE, number = (int)(receive_buffers[i][0] >> 32 & 0xffff);
    int count = -1, wrong = 0;
    MPI_Get_count(status, MPI_LONG_LONG, &count);
    EXPECT_EQ(count, WORDS);
    for (int k = 0; k < WORDS; k++)
        wrong += receive_buffers[i][k] != message_word(source, number, k);
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(number > newest[source], posted[i] > newest_post[source]);
    if (number > newest[source]) {
        newest[source] = number;
        newest_post[source] = posted[i];
    }
}

static void handle_completion(int i, int rc, const MPI_Status *status)
{
    int acknowledged;
    if (get_error_class(rc) == MPIX_ERR_PROC_FAILED_PENDING) {
        EXPECT(receives[i] != MPI_REQUEST_NULL);
        npending++;
        EXPECT_CLASS(MPIX_Comm_ack_failed(now, size, &acknowledged), MPI_SUCCESS);
        return;
    }
    EXPECT(receives[i] == MPI_REQUEST_NULL);
    if (rc != MPI_SUCCESS)
        EXPECT_DEATH(rc); /* fails: the dead rank had announced this message */
    else if (status->MPI_TAG == TAG_LAST)
        nlast++;
    else
        check_message(i, status);
    post_receive(i);
}

static void complete_with_waitall(void)
{
    MPI_Status statuses[RECEIVES];
    int rc = MPI_Waitall(RECEIVES, receives, statuses);
    if (rc != MPI_SUCCESS)
        EXPECT_CLASS(rc, MPI_ERR_IN_STATUS);
    for (int i = 0; i < RECEIVES; i++)
        handle_completion(i, rc == MPI_SUCCESS ? MPI_SUCCESS : statuses[i].MPI_ERROR, &statuses[i]);
}

static void complete_any(int count_remaining_messages)
{
    MPI_Status status;
    int i = (int)wildcard_random_choice(RECEIVES), flag = 1, rc;
    switch (count_remaining_messages > 2 * RECEIVES ? wildcard_random_choice(4) : 2) {
    case 0:
        complete_with_waitall();
        return;
    case 1:
        rc = MPI_Wait(&receives[i], &status);
        break;
    case 2:
        rc = MPI_Waitany(RECEIVES, receives, &i, &status);
        break;
    default:
        rc = MPI_Test(&receives[i], &flag, &status);
    }
    if (flag)
        handle_completion(i, rc, &status);
}

/* Returns the number of messages that living senders still have to send. With enough of them any single
 * receive can be waited for. */
static int count_remaining_messages(void)
{
    int sum = 0;
    for (int source = 1; source < size; source++)
        sum += source == victim ? 0 : MESSAGES - 1 - (int)newest[source];
    return sum;
}

static void receive_all_messages(void)
{
    nlast = npending = 0;
    nposted = 0;
    for (int source = 0; source < size; source++)
        newest[source] = newest_post[source] = -1;
    for (int i = 0; i < RECEIVES; i++)
        post_receive(i);
    while (nlast < size - 2 ||
           npending == 0) /* until all living senders have finished and one sender has died */
        complete_any(count_remaining_messages());
    for (int i = 0; i < RECEIVES; i++) {
        MPI_Status status;
        int cancelled;
        MPI_Cancel(&receives[i]);
        if (MPI_Wait(&receives[i], &status) == MPI_SUCCESS) {
            MPI_Test_cancelled(&status, &cancelled);
            if (!cancelled)
                check_message(i, &status);
        }
        EXPECT(receives[i] == MPI_REQUEST_NULL);
    }
    for (int source = 1; source < size; source++)
        if (source != victim)
            EXPECT_EQ(newest[source], MESSAGES - 1);
    printf("%d ranks: %d suspended receives\n", size, npending);
}

static void test_any_source(void)
{
    const int dies_after = (int)wildcard_random_choice(MESSAGES);
    if (rank == 0)
        receive_all_messages();
    else
        send_all_messages(dies_after);
}

int main(int argc, char **argv)
{
    static void (*const phases[])(void) = {test_any_source, test_any_source, test_any_source};
    const char *given = getenv("WILDCARD_SEED");
    seed = given ? (uint32_t)atoi(given) : 1;
    mpitest_begin(&argc, &argv);
    run_phases(phases, 3);
    return finalize_and_get_status();
}
