/* rails.c: the program of the multi-rail tests: every rank exchanges messages of every kind with every
 * other rank and checks all bytes, while ports go down and up. The arguments are names of ports in softib
 * (node1/hca1/1): each port goes down in the middle of an exchange and comes up in the middle of another
 * one. With "dead" before its name a port stays down. With "late" before its name
 * the port was down at the start and comes up: a further rail is joined. With "moved" it is the primary port
 * of the connections, which move to another port and return; with "remove" the name is that of an adapter (node1/hca0), which is
 * removed. With "joined" the program exchanges messages until secondary rails are in use. With "freed" the
 * port goes down after flags were written to memory that has been released since: no rank knows that the
 * flags have arrived, and they must not be written again. With "unseen" the last rank detects that the
 * port is down when frames have arrived through it that the rank has not polled. With "notified" before
 * two names the same happens at the second port, after rank 0 has reported that its own port, the first
 * one, is down. With "closed" rank 1 agrees to close its connection to rank 0 while its port is down: the
 * agreement is lost, and rank 0 must detect that.
 *
 * The environment names the softib tool (SOFTIB).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "counters.h"
#include "mpitest.h"

enum { LARGE = 1 << 20, SIZES = 6, RANKS_MAX = 8, ROUNDS = 2, PATIENCE = 4000, UNSEEN = 12 };

static const int sizes[SIZES] = {8, 3000, 60000, LARGE, 70001, 200000};
static unsigned char *out[RANKS_MAX][SIZES], *in[RANKS_MAX][SIZES];

static unsigned char message_byte(int from, int to, int round, int i)
{
    return (unsigned char)(from * 31 + to * 17 + round * 7 + i * 3 + (i >> 8) + (i >> 16));
}

static void set_port_state(const char *state, const char *name)
{
    char command[512];
    int remove = strcmp(state, "remove") == 0;
    snprintf(command, sizeof(command), "%s ctl %s %s %s", getenv("SOFTIB"), remove ? "hca" : "port", state,
             name);
    EXPECT_EQ(system(command), 0);
}

static int start_exchange(int round, MPI_Request *requests)
{
    int n = 0;
    for (int r = 0; r < mpitest_size; r++)
        for (int k = 0; k < SIZES && r != mpitest_rank; k++) {
            memset(in[r][k], 0, (size_t)sizes[k]);
            for (int i = 0; i < sizes[k]; i++)
                out[r][k][i] = message_byte(mpitest_rank, r, round, i);
            MPI_Irecv(in[r][k], sizes[k], MPI_BYTE, r, k, MPI_COMM_WORLD, &requests[n++]);
        }
    for (int k = 0; k < SIZES; k++)
        for (int r = 0; r < mpitest_size; r++)
            if (r != mpitest_rank)
                MPI_Isend(out[r][k], sizes[k], MPI_BYTE, r, k, MPI_COMM_WORLD, &requests[n++]);
    return n;
}

/* Exchanges messages; in the middle rank 0 may change the state of a port. */
static void exchange_messages(int round, const char *state, const char *name)
{
    MPI_Request requests[2 * RANKS_MAX * SIZES];
    int n = start_exchange(round, requests);
    if (state && mpitest_rank == 0)
        set_port_state(state, name);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int r = 0; r < mpitest_size; r++)
        for (int k = 0; k < SIZES && r != mpitest_rank; k++) {
            int wrong = 0;
            for (int i = 0; i < sizes[k]; i++)
                wrong += in[r][k][i] != message_byte(r, mpitest_rank, round, i);
            EXPECT_EQ(wrong, 0);
        }
}

/* Returns the sum of a counter over all ranks since the start of the job. */
static long long sum_counter(MPI_T_pvar_handle handle)
{
    long long value = (long long)read_counter(handle), sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

/* Exchanges messages until the counter has grown: the rail is used again, or its loss was detected. */
static void exchange_until_counted(MPI_T_pvar_handle handle, long long before, int *round)
{
    int tries = 0;
    while (sum_counter(handle) == before && tries++ < PATIENCE)
        exchange_messages((*round)++, NULL, NULL);
    EXPECT(tries < PATIENCE);
}

/* Takes the port down and polls until this rank has detected the loss. */
static void take_port_down(const char *name, MPI_T_pvar_handle losses)
{
    const unsigned long long before = read_counter(losses);
    const double end = MPI_Wtime() + 60;
    int flag;
    set_port_state("down", name);
    while (read_counter(losses) == before && MPI_Wtime() < end)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    EXPECT(read_counter(losses) > before);
}

/* The last rank's port goes down when frames have arrived through it that the rank has not polled; rank 0 has
 * no copies of these acknowledged frames. With `other` rank 0 loses that port first, and the last rank
 * handles the report of that loss before the frames. */
static void test_unseen(const char *name, const char *other, MPI_T_pvar_handle losses)
{
    int last = mpitest_size - 1, length = sizes[1];
    if (other) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (mpitest_rank == 0)
            take_port_down(other, losses);
        if (mpitest_rank == last) {
            sleep(1);
            set_port_state("down", name);
            usleep(100 * 1000);
        }
    }
    for (int i = 0; mpitest_rank == 0 && i < UNSEEN; i++) {
        memset(out[last][1], i + 1, (size_t)length);
        MPI_Send(out[last][1], length, MPI_BYTE, last, i, MPI_COMM_WORLD);
    }
    for (int i = 0; mpitest_rank == last && i < UNSEEN; i++) {
        MPI_Recv(in[0][1], length, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(in[0][1][0] == i + 1 && in[0][1][length - 1] == i + 1);
        if (i == 0 && !other)
            set_port_state("down", name);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The barrier writes flags without completions, and no later message shows their arrival: each rank polls
 * until its connection has moved. */
static void test_freed(const char *name, MPI_T_pvar_handle moved)
{
    MPI_Comm other;
    int flag;
    const unsigned long long before = read_counter(moved);
    const double end = MPI_Wtime() + 60;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (int i = 0; i < 3; i++)
        MPI_Barrier(other);
    MPI_Comm_free(&other);
    if (mpitest_rank == 0)
        set_port_state("down", name);
    while (read_counter(moved) == before && MPI_Wtime() < end)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    EXPECT(read_counter(moved) > before);
}

static void ping(int other)
{
    int word = 0;
    if (mpitest_rank == 0)
        MPI_Send(&word, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    if (mpitest_rank == other)
        MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (mpitest_rank == other)
        MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    if (mpitest_rank == 0)
        MPI_Recv(&word, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 0 is limited to one connection: the connection to rank 2 replaces the one to rank 1. Rank 1 makes no
 * call until rank 0 has sent its request to close. */
static void test_closed(const char *name)
{
    MPI_T_pvar_handle closes = counter_open("ib_connections_closed");
    ping(1);
    if (mpitest_rank == 1) {
        const unsigned long long before = read_counter(closes);
        const double end = MPI_Wtime() + 60;
        int flag;
        sleep(1);
        set_port_state("down", name);
        while (read_counter(closes) == before && MPI_Wtime() < end)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        EXPECT(read_counter(closes) > before);
        set_port_state("up", name);
    }
    ping(2);
    ping(1);
}

int main(int argc, char **argv)
{
    int round = 0, dead = 0, moved = 0;
    const char *down = "down";
    mpitest_begin(&argc, &argv);
    counters_begin();
    MPI_T_pvar_handle joins = counter_open("ib_rails_joined"), losses = counter_open("ib_rail_failures");
    MPI_T_pvar_handle moves = counter_open("ib_connections_moved");
    for (int r = 0; r < mpitest_size; r++)
        for (int k = 0; k < SIZES; k++) {
            out[r][k] = malloc((size_t)sizes[k]);
            in[r][k] = malloc((size_t)sizes[k]);
        }
    if (argc > 2 && strcmp(argv[1], "closed") == 0) { /* before other connections are opened */
        test_closed(argv[2]);
        return mpitest_end();
    }
    for (int i = 0; i < ROUNDS; i++)
        exchange_messages(round++, NULL, NULL);
    for (int a = 1; a < argc; a++) {
        if (strcmp(argv[a], "dead") == 0) {
            dead = 1;
            continue;
        }
        if (strcmp(argv[a], "moved") == 0) {
            moved = 1;
            continue;
        }
        if (strcmp(argv[a], "remove") == 0) {
            dead = 1;
            down = argv[a];
            continue;
        }
        if (strcmp(argv[a], "late") == 0) {
            long long before = sum_counter(joins);
            exchange_messages(round++, "up", argv[++a]);
            if (a + 1 == argc)
                exchange_until_counted(joins, before, &round);
            exchange_messages(round++, NULL, NULL);
            continue;
        }
        exchange_until_counted(joins, 0, &round);
        if (strcmp(argv[a], "joined") == 0) {
            exchange_messages(round++, NULL, NULL);
            continue;
        }
        if (strcmp(argv[a], "freed") == 0) {
            test_freed(argv[++a], moves);
            exchange_messages(round++, NULL, NULL);
            continue;
        }
        if (strcmp(argv[a], "unseen") == 0) {
            test_unseen(argv[++a], NULL, losses);
            continue;
        }
        if (strcmp(argv[a], "notified") == 0) {
            a += 2;
            test_unseen(argv[a], argv[a - 1], losses);
            continue;
        }
        if (moved)
            losses = joins = moves;
        long long failures = sum_counter(losses);
        exchange_messages(round++, down, argv[a]);
        exchange_until_counted(losses, failures, &round);
        exchange_messages(round++, NULL, NULL);
        if (dead)
            continue;
        long long joined = sum_counter(joins);
        exchange_messages(round++, "up", argv[a]);
        exchange_until_counted(joins, joined, &round);
        exchange_messages(round++, NULL, NULL);
    }
    return mpitest_end();
}
