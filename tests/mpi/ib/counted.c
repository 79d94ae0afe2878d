/* counted.c: each mechanism of the InfiniBand transport follows its setting: the program compares its
 * environment with the performance variables.
 *
 * ranks: 4
 * nodes: only 4
 * also: FISHPLATE_IB_POLLSET=0
 * also: FISHPLATE_IB_POLLSET=1
 * also: FISHPLATE_LAB=IB_LAST_BYTE=no
 * also: FISHPLATE_LAB=IB_LAST_BYTE=no FISHPLATE_IB_POLLSET=16
 * also: FISHPLATE_LAB=IB_FLOW=static FISHPLATE_IB_BUFFERS=2 FISHPLATE_IB_POLLSET=0
 * also: FISHPLATE_LAB=IB_FLOW=static FISHPLATE_IB_BUFFERS=1 FISHPLATE_IB_POLLSET=0
 * also: FISHPLATE_LAB=IB_FLOW=static,IB_CREDIT_MESSAGE=1 FISHPLATE_IB_POLLSET=0
 * also: FISHPLATE_IB_BUFFERS=2 FISHPLATE_LAB=IB_BUFFERS_MAX=20 FISHPLATE_IB_POLLSET=0
 * also: FISHPLATE_IB_BUFFERS=1 FISHPLATE_LAB=IB_GROWTH=linear FISHPLATE_IB_POLLSET=0
 * also: FISHPLATE_IB_POLLSET=1 FISHPLATE_LAB=IB_POLL_POLICY=traffic
 * also: FISHPLATE_LAB=IB_FLOW=hw FISHPLATE_IB_BUFFERS=2 FISHPLATE_IB_POLLSET=0
 * also: FISHPLATE_IB_RECEIVE=shared FISHPLATE_IB_POLLSET=0
 * also: FISHPLATE_IB_RECEIVE=xrc FISHPLATE_IB_POLLSET=0
 * also: FISHPLATE_IB_MAX_CONNECTIONS=1
 * also: FISHPLATE_IB_CONNECT=static
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"

enum { SMALL = 400, BURST = 64, BYTES = 3000, FEW = 40, PATIENCE = 100000 };

static const char *const names[] = {
    "ib_connections_opened", "ib_connections_closed", "ib_ring_frames_received", "ib_rings_added",
    "ib_rings_removed",      "ib_frames_received",    "ib_credit_waits",         "ib_credit_messages",
    "ib_shared_refills",     "ib_receives_posted_max"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static MPI_T_pvar_handle handles[NAMES];

static void start_counting(void)
{
    counters_begin();
    for (int i = 0; i < NAMES; i++)
        handles[i] = counter_open(names[i]);
}

static long long get_counter(const char *name)
{
    for (int i = 0; i < NAMES; i++)
        if (strcmp(names[i], name) == 0)
            return (long long)read_counter(handles[i]);
    return -1;
}

/* Returns the value of a setting in the environment or in FISHPLATE_LAB, up to a comma or the end; NULL:
 * not set. */
static const char *setting_text(const char *name)
{
    const char *text = getenv(name), *lab = getenv("FISHPLATE_LAB");
    name += strlen("FISHPLATE_");
    while (!text && lab) {
        if (strncmp(lab, name, strlen(name)) == 0 && lab[strlen(name)] == '=')
            text = lab + strlen(name) + 1;
        lab = strchr(lab, ',');
        lab += lab != NULL;
    }
    return text;
}

static long long setting_number(const char *name, long long otherwise)
{
    const char *text = setting_text(name);
    return text ? atoll(text) : otherwise;
}

static int setting_is(const char *name, const char *value)
{
    const char *text = setting_text(name);
    return text && strcspn(text, ",") == strlen(value) && strncmp(text, value, strlen(value)) == 0;
}

/* Exchanges small messages around a ring: every rank receives from one other rank. */
static void exchange_small_messages(void)
{
    int right = (mpitest_rank + 1) % mpitest_size, left = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    for (int i = 0; i < SMALL; i++) {
        int got = -1;
        MPI_Sendrecv(&i, 1, MPI_INT, right, 0, &got, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQ(got, i);
    }
}

/* Sends more frames than there are buffers before the receiver polls. */
static void send_burst(void)
{
    static char data[BURST][BYTES];
    MPI_Request requests[BURST];
    int partner = mpitest_rank ^ 1;
    for (int i = 0; i < BURST; i++) {
        memset(data[i], i, BYTES);
        if (mpitest_rank % 2)
            MPI_Isend(data[i], BYTES, MPI_CHAR, partner, i, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Irecv(data[i], BYTES, MPI_CHAR, partner, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < BURST; i++)
        EXPECT_EQ(data[i][BYTES - 1], (char)i);
}

/* Checks the number of buffers per peer: the setting, and more only if flow control is dynamic and a
 * sender had to wait. */
static void check_buffers(void)
{
    long long first = setting_number("FISHPLATE_IB_BUFFERS", 8),
              most = setting_number("FISHPLATE_IB_BUFFERS_MAX", 128);
    int dynamic = !setting_text("FISHPLATE_IB_FLOW") || setting_is("FISHPLATE_IB_FLOW", "dynamic");
    if (!dynamic)
        EXPECT_EQ(get_counter("ib_receives_posted_max"), first);
    if (dynamic && first <= 2 && mpitest_rank % 2 == 0)
        EXPECT(get_counter("ib_receives_posted_max") > first);
    EXPECT(get_counter("ib_receives_posted_max") <= most);
}

/* Rank 0 polls one ring. It receives a few messages from rank 1 and then more from rank 2, which must get
 * the ring: the ring of rank 1 is removed, and once rank 1 has stopped writing, rank 2 gets one. Rank 2
 * sends until its frames arrive by ring. */
static void test_competition_for_ring(void)
{
    int word = 0, go = 1;
    long long removed = get_counter("ib_rings_removed");
    if (mpitest_rank == 1) {
        for (int i = 0; i < FEW; i++)
            MPI_Send(&i, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        MPI_Recv(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < FEW; i++)
            MPI_Send(&i, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    } else if (mpitest_rank == 2) {
        while (go) {
            MPI_Recv(&go, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&go, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        }
    } else if (mpitest_rank == 0) {
        for (int i = 0; i < FEW; i++) {
            MPI_Recv(&word, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            EXPECT_EQ(word, i);
        }
        int by_ring = 0;
        for (int i = 0; go; i++) {
            long long before = get_counter("ib_ring_frames_received");
            go = by_ring < FEW && i < PATIENCE;
            MPI_Send(&go, 1, MPI_INT, 2, 3, MPI_COMM_WORLD);
            MPI_Recv(&word, 1, MPI_INT, 2, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            by_ring += get_counter("ib_ring_frames_received") > before;
        }
        EXPECT(by_ring >= FEW); /* rank 2 has its own ring, and that of rank 1 was removed */
        EXPECT(get_counter("ib_rings_removed") > removed);
        MPI_Send(&go, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
        for (int i = 0; i < FEW; i++) {
            MPI_Recv(&word, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            EXPECT_EQ(word, i);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Exchanges messages with one peer after the other: with a limit of one connection each new connection
 * replaces the previous one. */
static void test_connection_limit(void)
{
    for (int round = 0; round < 3; round++)
        for (int step = 1; step < mpitest_size; step++) {
            int to = (mpitest_rank + step) % mpitest_size,
                from = (mpitest_rank + mpitest_size - step) % mpitest_size;
            int got = -1;
            MPI_Sendrecv(&mpitest_rank, 1, MPI_INT, to, 1, &got, 1, MPI_INT, from, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            EXPECT_EQ(got, from);
        }
}

int main(int argc, char **argv)
{
    start_counting();
    mpitest_begin(&argc, &argv);
    long long at_start = get_counter("ib_connections_opened");
    EXPECT_EQ(at_start, setting_is("FISHPLATE_IB_CONNECT", "static") ? mpitest_size - 1 : 0);

    exchange_small_messages();
    long long limit =
        setting_is("FISHPLATE_IB_LAST_BYTE", "no") ? 0 : setting_number("FISHPLATE_IB_POLLSET", 16);
    int rings = limit > 0;
    if (setting_number("FISHPLATE_IB_MAX_CONNECTIONS", 0) == 0) {
        EXPECT((get_counter("ib_ring_frames_received") > SMALL / 2) == rings);
        EXPECT((get_counter("ib_rings_added") > 0) == rings);
        EXPECT(rings || get_counter("ib_frames_received") >= SMALL);
        EXPECT(get_counter("ib_rings_added") - get_counter("ib_rings_removed") <= limit);
    }

    send_burst();
    if (setting_is("FISHPLATE_IB_FLOW", "static") && mpitest_rank % 2)
        EXPECT(get_counter("ib_credit_waits") > 0);
    if (setting_is("FISHPLATE_IB_FLOW", "hw")) {
        EXPECT_EQ(get_counter("ib_credit_waits"), 0);
        EXPECT_EQ(get_counter("ib_credit_messages"), 0);
    }
    if (setting_is("FISHPLATE_IB_RECEIVE", "shared"))
        EXPECT(get_counter("ib_shared_refills") > 2);
    check_buffers();
    if (setting_number("FISHPLATE_IB_CREDIT_MESSAGE", 0) == 1 && mpitest_rank % 2 == 0)
        /* A credit message is sent when half of a peer's eight credits are owed. */
        EXPECT(get_counter("ib_credit_messages") >= BURST / 2);
    if (setting_is("FISHPLATE_IB_POLL_POLICY", "traffic"))
        test_competition_for_ring();

    test_connection_limit();
    EXPECT(get_counter("ib_connections_opened") >= mpitest_size - 1);
    if (setting_number("FISHPLATE_IB_MAX_CONNECTIONS", 0) == 1) {
        long long closed = get_counter("ib_connections_closed"), all;
        MPI_Allreduce(&closed, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        EXPECT(all > 0);
    } else {
        EXPECT_EQ(get_counter("ib_connections_closed"), 0);
        EXPECT_EQ(get_counter("ib_connections_opened"), mpitest_size - 1);
    }
    counters_end();
    return mpitest_end();
}
