/* traffic.c: everybody sends to everybody, in an order drawn by lot: sizes around every limit of the
 * transport, several messages of one pair in flight at once, replies that cross. Every byte is checked. Run
 * in every mode of the InfiniBand transport.
 *
 * ranks: 4 8
 * nodes: only 4
 * also: FISHPLATE_LAB=IB_FLOW=hw
 * also: FISHPLATE_LAB=IB_FLOW=static FISHPLATE_IB_BUFFERS=2
 * also: FISHPLATE_LAB=IB_FLOW=static FISHPLATE_IB_BUFFERS=1
 * also: FISHPLATE_IB_BUFFERS=1 FISHPLATE_LAB=IB_CREDIT_MESSAGE=5
 * also: FISHPLATE_LAB=IB_FLOW=dynamic,IB_BUFFERS_MAX=8,IB_GROWTH=linear FISHPLATE_IB_BUFFERS=2
 * also: FISHPLATE_IB_RECEIVE=shared
 * also: FISHPLATE_IB_RECEIVE=shared FISHPLATE_LAB=IB_FLOW=hw,IB_SHARED_BASE=8,IB_SHARED_FACTOR=0
 * also: FISHPLATE_IB_RECEIVE=xrc
 * also: FISHPLATE_IB_RECEIVE=xrc FISHPLATE_IB_MAX_CONNECTIONS=1 FISHPLATE_LAB=IB_SHARED_BASE=8,IB_SHARED_FACTOR=0
 * also: FISHPLATE_IB_POLLSET=0
 * also: FISHPLATE_IB_POLLSET=1 FISHPLATE_LAB=IB_POLL_POLICY=traffic
 * also: FISHPLATE_IB_POLLSET=3 FISHPLATE_LAB=IB_POLL_ORDER=prioritised,IB_RING_SLOTS=2
 * also: FISHPLATE_LAB=IB_LAST_BYTE=no FISHPLATE_IB_POLLSET=16
 * also: FISHPLATE_LAB=IB_LAST_BYTE=no FISHPLATE_IB_POLLSET=16 FISHPLATE_IB_RECEIVE=shared
 * also: FISHPLATE_IB_MAX_CONNECTIONS=1
 * also: FISHPLATE_IB_MAX_CONNECTIONS=1 FISHPLATE_PROGRESS=thread
 * also: FISHPLATE_IB_CONNECT=static FISHPLATE_LAB=IB_SEND_DEPTH=32,IB_SIGNAL_EVERY=1
 * also: FISHPLATE_SPIN_US=0 FISHPLATE_LAB=YIELDS=0
 * also: FISHPLATE_REG_CACHE=0 FISHPLATE_RENDEZVOUS=rput
 * also: FISHPLATE_RENDEZVOUS=getcqe
 * also: FISHPLATE_RENDEZVOUS=get
 * also: FISHPLATE_RENDEZVOUS=putnr
 * also: FISHPLATE_RENDEZVOUS=put
 * also: FISHPLATE_RENDEZVOUS=put FISHPLATE_LAB=LAST_BYTE_POLL=always
 * also: FISHPLATE_RENDEZVOUS=putnr FISHPLATE_LAB=LAST_BYTE_POLL=always FISHPLATE_PROGRESS=thread
 * also: FISHPLATE_RENDEZVOUS=r3
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum { ROUNDS = 40, BURST = 12, LONGEST = 300000 };

static const int sizes[] = {0,    1,    8,    100,   1000,  2006,  2007,  2008,
                            2016, 2048, 4000, 16383, 16384, 16385, 70000, LONGEST};

static unsigned traffic_next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The length of message number k of a round from `from` to `to`: both sides draw the same number. */
static int length_of(int round, int from, int to, int k)
{
    unsigned state = (unsigned)(((round * 31 + from) * 31 + to) * 31 + k);
    traffic_next(&state);
    unsigned draw = traffic_next(&state) % 64;
    return draw < 40 ? sizes[draw % 6] : sizes[draw % 16];
}

static int count_of(int round, int from, int to)
{
    unsigned state = (unsigned)((round * 131 + from) * 131 + to);
    traffic_next(&state);
    return (int)(traffic_next(&state) % (BURST + 1));
}

static void traffic_fill(unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++)
        at[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

static void traffic_check(const unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++)
        if (at[i] != (unsigned char)(seed + i * 7 + (i >> 8))) {
            EXPECT_EQ(at[i], (unsigned char)(seed + i * 7 + (i >> 8)));
            return; /* one is enough */
        }
}

static void one_round(int round, int rank, int size)
{
    MPI_Request requests[2 * 8 * BURST];
    unsigned char *in[8][BURST], *out[8][BURST];
    int n = 0;
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < count_of(round, peer, rank); k++) {
            int length = length_of(round, peer, rank, k);
            in[peer][k] = calloc(1, (size_t)length + 1);
            MPI_Irecv(in[peer][k], length, MPI_BYTE, peer, round, MPI_COMM_WORLD, &requests[n++]);
        }
    for (int k = 0; k < BURST; k++)
        for (int step = 0; step < size; step++) {
            int peer = (rank + step) % size;
            if (k >= count_of(round, rank, peer))
                continue;
            int length = length_of(round, rank, peer, k);
            out[peer][k] = malloc((size_t)length + 1);
            traffic_fill(out[peer][k], length, rank + 3 * k);
            MPI_Isend(out[peer][k], length, MPI_BYTE, peer, round, MPI_COMM_WORLD, &requests[n++]);
        }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < size; peer++) {
        for (int k = 0; k < count_of(round, peer, rank); k++) {
            traffic_check(in[peer][k], length_of(round, peer, rank, k), peer + 3 * k);
            free(in[peer][k]);
        }
        for (int k = 0; k < count_of(round, rank, peer); k++)
            free(out[peer][k]);
    }
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++)
        one_round(round, mpitest_rank, mpitest_size);
    return mpitest_end();
}
