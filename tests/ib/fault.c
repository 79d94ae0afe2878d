/* fault.c: what the tests of faults run: one thing goes wrong in a program that checks every byte. Which one
 * is the argument.
 *
 *     storm        everybody sends to rank 0, which looks away: more than its receive queues hold
 *     down         the port of rank 1's node goes down for good
 *     down-early   ... before anybody has a connection to it
 *     flap         ... and comes up again while messages wait
 *     away         ... and comes up again when the connection has failed
 *     window       ... while words are put into its window
 *     kill         rank 1 is killed after some messages
 *     kill-early   rank 1 is killed before anybody has a connection to it
 *     strike       rank 1 makes no MPI call until rank 0 has waited longer than a handshake usually takes
 *
 * The environment names the softib tool (SOFTIB), and with STORM=refused rank 0 looks away until an
 * adapter has refused a message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <unistd.h>

#include "counters.h"
#include "mpitest.h"

enum { MESSAGES = 240, LONGEST = 3000, LARGE = 1 << 20 };

static const int sizes[] = {0, 8, 1000, 2500, LONGEST};

static void fault_fill(unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++)
        at[i] = (unsigned char)(seed + i * 3 + (i >> 8));
}

static void fault_check(const unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++)
        if (at[i] != (unsigned char)(seed + i * 3 + (i >> 8))) {
            EXPECT_EQ(at[i], (unsigned char)(seed + i * 3 + (i >> 8)));
            return;
        }
}

static int length_of(int k)
{
    return sizes[k % (int)(sizeof(sizes) / sizeof(sizes[0]))];
}

/* Sleeps outside MPI. */
static void fault_sleep_outside_mpi(double seconds)
{
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
        usleep(1000);
}

/* ---- storm ---- */

/* The sum of a counter over all ports of the fabric. */
static long fabric_counter(const char *name)
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

static void storm_send(void)
{
    static unsigned char out[MESSAGES][LONGEST];
    MPI_Request requests[MESSAGES];
    for (int k = 0; k < MESSAGES; k++) {
        fault_fill(out[k], length_of(k), k + mpitest_rank);
        MPI_Isend(out[k], length_of(k), MPI_BYTE, 0, k, MPI_COMM_WORLD, &requests[k]);
    }
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
}

static int must_refuse(void)
{
    const char *wanted = getenv("STORM");
    return wanted && strcmp(wanted, "refused") == 0;
}

/* Makes no MPI call until an adapter has refused a message: the senders send more than there is room for. mpiexec's
 * timeout ends the wait if that never happens. */
static void look_away_until_refused(void)
{
    while (fabric_counter("rnr_naks") == 0)
        usleep(1000);
}

static void storm_receive(void)
{
    unsigned char in[LONGEST];
    int next[64] = {0};
    if (must_refuse())
        look_away_until_refused();
    for (int n = 0; n < MESSAGES * (mpitest_size - 1); n++) {
        MPI_Status s;
        int count;
        if (n % 100 == 0)
            fault_sleep_outside_mpi(0.05);
        MPI_Recv(in, LONGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
        MPI_Get_count(&s, MPI_BYTE, &count);
        EXPECT_EQ(s.MPI_TAG, next[s.MPI_SOURCE]); /* in order */
        next[s.MPI_SOURCE] = s.MPI_TAG + 1;
        EXPECT_EQ(count, length_of(s.MPI_TAG));
        fault_check(in, count, s.MPI_TAG + s.MPI_SOURCE);
    }
}

static void fault_many_messages(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 0)
        storm_receive();
    else
        storm_send();
}

/* ---- rank 0 and rank 1 ---- */

static unsigned char out[LARGE], in[LARGE], small_out[16][LONGEST], small_in[16][LONGEST];

/* Several small messages and a large one each way, at once. */
static int exchange_begin(int round, MPI_Request *requests)
{
    int n = 0, partner = 1 - mpitest_rank;
    memset(in, 0, sizeof(in));
    fault_fill(out, LARGE, round + mpitest_rank);
    for (int k = 0; k < 16; k++) {
        fault_fill(small_out[k], LONGEST, round + k + mpitest_rank);
        MPI_Irecv(small_in[k], LONGEST, MPI_BYTE, partner, k, MPI_COMM_WORLD, &requests[n++]);
    }
    MPI_Irecv(in, LARGE, MPI_BYTE, partner, 16, MPI_COMM_WORLD, &requests[n++]);
    for (int k = 0; k < 16; k++)
        MPI_Isend(small_out[k], length_of(k), MPI_BYTE, partner, k, MPI_COMM_WORLD, &requests[n++]);
    MPI_Isend(out, LARGE, MPI_BYTE, partner, 16, MPI_COMM_WORLD, &requests[n++]);
    return n;
}

static void exchange_end(int round, MPI_Request *requests, int n)
{
    int partner = 1 - mpitest_rank;
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 16; k++)
        fault_check(small_in[k], length_of(k), round + k + partner);
    fault_check(in, LARGE, round + partner);
}

static void fault_exchange(int round)
{
    MPI_Request requests[34];
    exchange_end(round, requests, exchange_begin(round, requests));
}

static void test_port(const char *state)
{
    char command[512];
    snprintf(command, sizeof(command), "%s ctl port %s node1/hca0/1", getenv("SOFTIB"), state);
    EXPECT_EQ(system(command), 0);
}

static void fault_port_down(int early)
{
    if (!early)
        fault_exchange(0);
    if (mpitest_rank == 0)
        test_port("down");
    fault_exchange(1); /* not to return */
    printf("rank %d got through a port that is down\n", mpitest_rank);
}

static void fault_port_flap(void)
{
    for (int round = 0; round < 6; round++) {
        int sent = round, got = -1;
        MPI_Request requests[2];
        fault_exchange(round);
        if (mpitest_rank == 0)
            test_port("down");
        MPI_Irecv(&got, 1, MPI_INT, 1 - mpitest_rank, 99, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&sent, 1, MPI_INT, 1 - mpitest_rank, 99, MPI_COMM_WORLD, &requests[1]);
        if (mpitest_rank == 0)
            test_port("up");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        EXPECT_EQ(got, round);
    }
}

/* Leaves MPI in the middle of an exchange until the connection has failed and is requested again. */
static void fault_leave_mpi(void)
{
    counters_begin();
    MPI_T_pvar_handle hellos = counter_open("ib_hellos_sent");
    for (int round = 0; round < 8; round += 2) {
        MPI_Request requests[34];
        fault_exchange(round);
        int n = exchange_begin(round + 1, requests);
        if (mpitest_rank == 0) {
            unsigned long long before = counter(hellos);
            MPI_Request more[2];
            int got, done = 0, sent = round;
            test_port("down");
            MPI_Irecv(&got, 1, MPI_INT, 1, 99, MPI_COMM_WORLD, &more[0]);
            MPI_Isend(&sent, 1, MPI_INT, 1, 99, MPI_COMM_WORLD, &more[1]);
            while (counter(hellos) == before && !done)
                MPI_Testall(2, more, &done, MPI_STATUSES_IGNORE);
            EXPECT(!done);
            test_port("up");
            MPI_Waitall(2, more, MPI_STATUSES_IGNORE);
            EXPECT_EQ(got, round);
        } else {
            int got;
            MPI_Recv(&got, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&got, 1, MPI_INT, 0, 99, MPI_COMM_WORLD);
        }
        exchange_end(round + 1, requests, n);
    }
    counters_end();
}

/* Several processes on each of two nodes: connections that share queue pairs fail together, in the middle of messages of all to all.
 * A round in which all messages arrive before the port goes down breaks nothing, so rounds continue until a connection was moved. */
static void fault_all_to_all(void)
{
    enum { LENGTHS = sizeof(sizes) / sizeof(sizes[0]), MOST = 16, ROUNDS_LEAST = 6, ROUNDS_MOST = 100 };
    static unsigned char to[MOST][LENGTHS][LONGEST], from[MOST][LENGTHS][LONGEST];
    MPI_Request requests[2 * MOST * LENGTHS];
    counters_begin();
    MPI_T_pvar_handle hellos = counter_open("ib_hellos_sent");
    MPI_T_pvar_handle moves = counter_open("ib_connections_moved");
    unsigned long long moved = 0;
    for (int round = 0; round < ROUNDS_LEAST || (moved == 0 && round < ROUNDS_MOST); round++) {
        int n = 0;
        for (int r = 0; r < mpitest_size; r++)
            for (int k = 0; k < LENGTHS; k++) {
                memset(from[r][k], 0, LONGEST);
                fault_fill(to[r][k], sizes[k], 100 * round + 10 * mpitest_rank + k);
                MPI_Irecv(from[r][k], LONGEST, MPI_BYTE, r, k, MPI_COMM_WORLD, &requests[n++]);
            }
        if (mpitest_rank == 0 && round % 2)
            test_port("down");
        unsigned long long before = counter(hellos);
        for (int r = 0; r < mpitest_size; r++)
            for (int k = 0; k < LENGTHS; k++)
                MPI_Isend(to[r][k], sizes[k], MPI_BYTE, r, k, MPI_COMM_WORLD, &requests[n++]);
        if (mpitest_rank == 0 && round % 2) {
            for (int done = 0; counter(hellos) == before && !done;)
                MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE);
            test_port("up");
        }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        for (int r = 0; r < mpitest_size; r++)
            for (int k = 0; k < LENGTHS; k++)
                fault_check(from[r][k], sizes[k], 100 * round + 10 * r + k);
        moved = counter(moves);
        MPI_Allreduce(MPI_IN_PLACE, &moved, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
    EXPECT(moved > 0);
    counters_end();
}

/* Rank 0 puts words into the memory of rank 1, which waits in a barrier, and reads them again. */
static void test_window(void)
{
    enum { WORDS = 64 };
    long long *memory, out_words[WORDS], in_words[WORDS];
    MPI_Win w;
    counters_begin();
    MPI_T_pvar_handle hellos = counter_open("ib_hellos_sent");
    MPI_Win_allocate(sizeof(out_words), sizeof(long long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &w);
    MPI_Win_lock_all(0, w);
    for (int round = 1; round <= 3 && mpitest_rank == 0; round++) {
        unsigned long long before = counter(hellos);
        for (int i = 0; i < WORDS; i++) {
            out_words[i] = round * 1000 + i;
            in_words[i] = -1;
        }
        MPI_Put(out_words, 1, MPI_LONG_LONG, 1, 0, 1, MPI_LONG_LONG, w);
        MPI_Win_flush(1, w);
        test_port("down");
        for (int i = 0; i < WORDS; i++)
            MPI_Put(&out_words[i], 1, MPI_LONG_LONG, 1, i, 1, MPI_LONG_LONG, w);
        for (int flag; counter(hellos) == before;)
            MPI_Iprobe(1, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        test_port("up");
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

static void kill_one(int early)
{
    if (!early)
        fault_exchange(0);
    if (mpitest_rank == 1)
        raise(SIGKILL);
    fault_exchange(1); /* not to return */
    printf("rank %d got through to the dead\n", mpitest_rank);
}

static void fault_kill_process(void)
{
    if (mpitest_rank == 1)
        fault_sleep_outside_mpi(3);
    fault_exchange(0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    mpitest_begin(&argc, &argv);
    if (strcmp(what, "storm") == 0)
        fault_many_messages();
    else if (strcmp(what, "down") == 0 || strcmp(what, "down-early") == 0)
        fault_port_down(what[4] != '\0');
    else if (strcmp(what, "flap") == 0)
        fault_port_flap();
    else if (strcmp(what, "window") == 0)
        test_window();
    else if (strcmp(what, "away") == 0)
        fault_leave_mpi();
    else if (strcmp(what, "together") == 0)
        fault_all_to_all();
    else if (strcmp(what, "kill") == 0 || strcmp(what, "kill-early") == 0)
        kill_one(what[4] != '\0');
    else if (strcmp(what, "strike") == 0)
        fault_kill_process();
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
    return mpitest_end();
}
