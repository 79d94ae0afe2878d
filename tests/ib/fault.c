/* fault.c: the program of the fault tests: one fault, selected by the argument, happens in a program that
 * checks every byte.
 * storm        all ranks send more messages to rank 0 than its receive queues hold, and rank 0 does not poll
 *     down         the port of rank 1's node goes down and stays down
 *     down-early   ... before any rank has a connection to rank 1
 *     flap         the port goes down and comes up again while messages wait
 *     away         the port goes down and comes up again after the connection has failed
 *     window       the port goes down and comes up while words are put into rank 1's window
 *     kill         rank 1 is killed after some messages
 *     kill-early   rank 1 is killed before any rank has a connection to it
 *     strike       rank 1 makes no MPI call until rank 0 has waited longer than a handshake usually takes
 *
 * The environment names the softib tool (SOFTIB), and with STORM=refused rank 0 does not poll until an
 * adapter has refused a message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <unistd.h>

#include "counters.h"
#include "mpitest.h"

enum { MESSAGES = 240, LENGTH_MAX = 3000, LARGE = 1 << 20 };

static const int sizes[] = {0, 8, 1000, 2500, LENGTH_MAX};

static void fill_message(unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++)
        at[i] = (unsigned char)(seed + i * 3 + (i >> 8));
}

static void check_message(const unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++)
        if (at[i] != (unsigned char)(seed + i * 3 + (i >> 8))) {
            EXPECT_EQ(at[i], (unsigned char)(seed + i * 3 + (i >> 8)));
            return;
        }
}

static int message_length(int k)
{
    return sizes[k % (int)(sizeof(sizes) / sizeof(sizes[0]))];
}

static void sleep_outside_mpi(double seconds)
{
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
        usleep(1000);
}

/* ---- storm ---- */

static long sum_fabric_counter(const char *name)
{
    char command[512], line[1024], key[64];
    long sum = 0;
    snprintf(command, sizeof(command), "%s stat --json", getenv("SOFTIB"));
    snprintf(key, sizeof(key), "\"%s\": ", name);
    FILE *in = popen(command, "r");
    EXPECT(in != NULL);
    while (in && fgets(line, sizeof(line), in)) {
        const char *at = strstr(line, key);
        sum += at ? atol(at + strlen(key)) : 0;
    }
    if (in)
        EXPECT_EQ(pclose(in), 0);
    return sum;
}

static void send_storm(void)
{
    static unsigned char out[MESSAGES][LENGTH_MAX];
    MPI_Request requests[MESSAGES];
    for (int k = 0; k < MESSAGES; k++) {
        fill_message(out[k], message_length(k), k + mpitest_rank);
        MPI_Isend(out[k], message_length(k), MPI_BYTE, 0, k, MPI_COMM_WORLD, &requests[k]);
    }
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
}

static int refusal_is_required(void)
{
    const char *wanted = getenv("STORM");
    return wanted && strcmp(wanted, "refused") == 0;
}

/* Makes no MPI call until an adapter has refused a message, since the senders send more than the receive
 * queues hold. mpiexec's timeout ends the wait if that never happens. */
static void wait_for_refusal(void)
{
    while (sum_fabric_counter("rnr_naks") == 0)
        usleep(1000);
}

static void receive_storm(void)
{
    unsigned char in[LENGTH_MAX];
    int next[64] = {0};
    if (refusal_is_required())
        wait_for_refusal();
    for (int n = 0; n < MESSAGES * (mpitest_size - 1); n++) {
        MPI_Status s;
        int count;
        if (n % 100 == 0)
            sleep_outside_mpi(0.05);
        MPI_Recv(in, LENGTH_MAX, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
        MPI_Get_count(&s, MPI_BYTE, &count);
        EXPECT_EQ(s.MPI_TAG, next[s.MPI_SOURCE]); /* messages of one sender arrive in order */
        next[s.MPI_SOURCE] = s.MPI_TAG + 1;
        EXPECT_EQ(count, message_length(s.MPI_TAG));
        check_message(in, count, s.MPI_TAG + s.MPI_SOURCE);
    }
}

static void test_storm(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 0)
        receive_storm();
    else
        send_storm();
}

/* ---- rank 0 and rank 1 ---- */

static unsigned char out[LARGE], in[LARGE], small_out[16][LENGTH_MAX], small_in[16][LENGTH_MAX];

/* Starts several small messages and a large one in each direction. */
static int start_exchange(int round, MPI_Request *requests)
{
    int n = 0, partner = 1 - mpitest_rank;
    memset(in, 0, sizeof(in));
    fill_message(out, LARGE, round + mpitest_rank);
    for (int k = 0; k < 16; k++) {
        fill_message(small_out[k], LENGTH_MAX, round + k + mpitest_rank);
        MPI_Irecv(small_in[k], LENGTH_MAX, MPI_BYTE, partner, k, MPI_COMM_WORLD, &requests[n++]);
    }
    MPI_Irecv(in, LARGE, MPI_BYTE, partner, 16, MPI_COMM_WORLD, &requests[n++]);
    for (int k = 0; k < 16; k++)
        MPI_Isend(small_out[k], message_length(k), MPI_BYTE, partner, k, MPI_COMM_WORLD, &requests[n++]);
    MPI_Isend(out, LARGE, MPI_BYTE, partner, 16, MPI_COMM_WORLD, &requests[n++]);
    return n;
}

static void finish_exchange(int round, MPI_Request *requests, int n)
{
    int partner = 1 - mpitest_rank;
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 16; k++)
        check_message(small_in[k], message_length(k), round + k + partner);
    check_message(in, LARGE, round + partner);
}

static void exchange_messages(int round)
{
    MPI_Request requests[34];
    finish_exchange(round, requests, start_exchange(round, requests));
}

static void set_port_state(const char *state)
{
    char command[512];
    snprintf(command, sizeof(command), "%s ctl port %s node1/hca0/1", getenv("SOFTIB"), state);
    EXPECT_EQ(system(command), 0);
}

static void test_port_down(int early)
{
    if (!early)
        exchange_messages(0);
    if (mpitest_rank == 0)
        set_port_state("down");
    exchange_messages(1); /* must not return: the unreachable peer ends the job */
    printf("rank %d finished an exchange although the port is down\n", mpitest_rank);
}

static void test_port_flap(void)
{
    for (int round = 0; round < 6; round++) {
        int sent = round, got = -1;
        MPI_Request requests[2];
        exchange_messages(round);
        if (mpitest_rank == 0)
            set_port_state("down");
        MPI_Irecv(&got, 1, MPI_INT, 1 - mpitest_rank, 99, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&sent, 1, MPI_INT, 1 - mpitest_rank, 99, MPI_COMM_WORLD, &requests[1]);
        if (mpitest_rank == 0)
            set_port_state("up");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        EXPECT_EQ(got, round);
    }
}

/* Makes no MPI call in the middle of an exchange until the connection has failed and the peer requests a new one. */
static void test_port_away(void)
{
    counters_begin();
    MPI_T_pvar_handle hellos = counter_open("ib_hellos_sent");
    for (int round = 0; round < 8; round += 2) {
        MPI_Request requests[34];
        exchange_messages(round);
        int n = start_exchange(round + 1, requests);
        if (mpitest_rank == 0) {
            unsigned long long before = read_counter(hellos);
            MPI_Request more[2];
            int got, done = 0, sent = round;
            set_port_state("down");
            MPI_Irecv(&got, 1, MPI_INT, 1, 99, MPI_COMM_WORLD, &more[0]);
            MPI_Isend(&sent, 1, MPI_INT, 1, 99, MPI_COMM_WORLD, &more[1]);
            while (read_counter(hellos) == before && !done)
                MPI_Testall(2, more, &done, MPI_STATUSES_IGNORE);
            EXPECT(!done);
            set_port_state("up");
            MPI_Waitall(2, more, MPI_STATUSES_IGNORE);
            EXPECT_EQ(got, round);
        } else {
            int got;
            MPI_Recv(&got, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&got, 1, MPI_INT, 0, 99, MPI_COMM_WORLD);
        }
        finish_exchange(round + 1, requests, n);
    }
    counters_end();
}

/* Several processes on each of two nodes: connections that share queue pairs fail together, in the middle
 * of messages of all to all. If all messages of a round arrive before the port goes down, no connection
 * fails, so rounds continue until a connection has moved. */
static void test_all_to_all(void)
{
    enum { LENGTHS = sizeof(sizes) / sizeof(sizes[0]), MOST = 16, ROUNDS_LEAST = 6, ROUNDS_MOST = 100 };
    static unsigned char to[MOST][LENGTHS][LENGTH_MAX], from[MOST][LENGTHS][LENGTH_MAX];
    MPI_Request requests[2 * MOST * LENGTHS];
    counters_begin();
    MPI_T_pvar_handle hellos = counter_open("ib_hellos_sent");
    MPI_T_pvar_handle moves = counter_open("ib_connections_moved");
    unsigned long long moved = 0;
    for (int round = 0; round < ROUNDS_LEAST || (moved == 0 && round < ROUNDS_MOST); round++) {
        int n = 0;
        for (int r = 0; r < mpitest_size; r++)
            for (int k = 0; k < LENGTHS; k++) {
                memset(from[r][k], 0, LENGTH_MAX);
                fill_message(to[r][k], sizes[k], 100 * round + 10 * mpitest_rank + k);
                MPI_Irecv(from[r][k], LENGTH_MAX, MPI_BYTE, r, k, MPI_COMM_WORLD, &requests[n++]);
            }
        if (mpitest_rank == 0 && round % 2)
            set_port_state("down");
        unsigned long long before = read_counter(hellos);
        for (int r = 0; r < mpitest_size; r++)
            for (int k = 0; k < LENGTHS; k++)
                MPI_Isend(to[r][k], sizes[k], MPI_BYTE, r, k, MPI_COMM_WORLD, &requests[n++]);
        if (mpitest_rank == 0 && round % 2) {
            for (int done = 0; read_counter(hellos) == before && !done;)
                MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE);
            set_port_state("up");
        }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        for (int r = 0; r < mpitest_size; r++)
            for (int k = 0; k < LENGTHS; k++)
                check_message(from[r][k], sizes[k], 100 * round + 10 * r + k);
        moved = read_counter(moves);
        MPI_Allreduce(MPI_IN_PLACE, &moved, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
    EXPECT(moved > 0);
    counters_end();
}

/* Rank 0 puts words into the memory of rank 1, which waits in a barrier, and reads them again. */
static void test_window_puts(void)
{
    enum { WORDS = 64 };
    long long *memory, out_words[WORDS], in_words[WORDS];
    MPI_Win w;
    counters_begin();
    MPI_T_pvar_handle hellos = counter_open("ib_hellos_sent");
    MPI_Win_allocate(sizeof(out_words), sizeof(long long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &w);
    MPI_Win_lock_all(0, w);
    for (int round = 1; round <= 3 && mpitest_rank == 0; round++) {
        unsigned long long before = read_counter(hellos);
        for (int i = 0; i < WORDS; i++) {
            out_words[i] = round * 1000 + i;
            in_words[i] = -1;
        }
        MPI_Put(out_words, 1, MPI_LONG_LONG, 1, 0, 1, MPI_LONG_LONG, w);
        MPI_Win_flush(1, w);
        set_port_state("down");
        for (int i = 0; i < WORDS; i++)
            MPI_Put(&out_words[i], 1, MPI_LONG_LONG, 1, i, 1, MPI_LONG_LONG, w);
        for (int flag; read_counter(hellos) == before;)
            MPI_Iprobe(1, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        set_port_state("up");
        MPI_Win_flush(1, w);
        MPI_Get(in_words, WORDS, MPI_LONG_LONG, 1, 0, WORDS, MPI_LONG_LONG, w);
        MPI_Win_flush(1, w);
        for (int i = 0; i < WORDS; i++)
            EXPECT_EQ(in_words[i], out_words[i]);
    }
    MPI_Win_unlock_all(w);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&w);
    counters_end();
}

static void test_kill_rank(int early)
{
    if (!early)
        exchange_messages(0);
    if (mpitest_rank == 1)
        raise(SIGKILL);
    exchange_messages(1); /* must not return: the dead peer ends the job */
    printf("rank %d finished an exchange with the dead rank\n", mpitest_rank);
}

static void test_rank_outside_mpi(void)
{
    if (mpitest_rank == 1)
        sleep_outside_mpi(3);
    exchange_messages(0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    mpitest_begin(&argc, &argv);
    if (strcmp(what, "storm") == 0)
        test_storm();
    else if (strcmp(what, "down") == 0 || strcmp(what, "down-early") == 0)
        test_port_down(what[4] != '\0');
    else if (strcmp(what, "flap") == 0)
        test_port_flap();
    else if (strcmp(what, "window") == 0)
        test_window_puts();
    else if (strcmp(what, "away") == 0)
        test_port_away();
    else if (strcmp(what, "together") == 0)
        test_all_to_all();
    else if (strcmp(what, "kill") == 0 || strcmp(what, "kill-early") == 0)
        test_kill_rank(what[4] != '\0');
    else if (strcmp(what, "strike") == 0)
        test_rank_outside_mpi();
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
    return mpitest_end();
}
