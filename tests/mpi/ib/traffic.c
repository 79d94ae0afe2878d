/* traffic.c: all ranks send to all ranks in random order: sizes around every limit of the transport,
 * several messages of one pair in flight at once, crossing replies. Every byte is checked. Runs in every
 * mode of the InfiniBand transport.
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
 * also: FISHPLATE_LAB=IB_LAST_BYTE=no
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

enum { ROUNDS = 40, BURST = 12, LENGTH_MAX = 300000 };

static const int sizes[] = {0,    1,    8,    100,   1000,  2006,  2007,  2008,
                            2016, 2048, 4000, 16383, 16384, 16385, 70000, LENGTH_MAX};

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The length of message k from `from` to `to` in a round; both sides compute the same random number. */
static int message_length(int round, int from, int to, int k)
{
    unsigned state = (unsigned)(((round * 31 + from) * 31 + to) * 31 + k);
    next_random(&state);
    unsigned draw = next_random(&state) % 64;
    return draw < 40 ? sizes[draw % 6] : sizes[draw % 16];
}

static int message_count(int round, int from, int to)
{
    unsigned state = (unsigned)((round * 131 + from) * 131 + to);
    next_random(&state);
    return (int)(next_random(&state) % (BURST + 1));
}

static void fill_message(unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++)
        at[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

static void check_message(const unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++)
        if (at[i] != (unsigned char)(seed + i * 7 + (i >> 8))) {
            EXPECT_EQ(at[i], (unsigned char)(seed + i * 7 + (i >> 8)));
            return; /* reports only the first wrong byte */
        }
}

static void run_round(int round, int rank, int size)
{
    MPI_Request requests[2 * 8 * BURST];
    unsigned char *in[8][BURST], *out[8][BURST];
    int n = 0;
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < message_count(round, peer, rank); k++) {
            int length = message_length(round, peer, rank, k);
            in[peer][k] = calloc(1, (size_t)length + 1);
            MPI_Irecv(in[peer][k], length, MPI_BYTE, peer, round, MPI_COMM_WORLD, &requests[n++]);
        }
    for (int k = 0; k < BURST; k++)
        for (int step = 0; step < size; step++) {
            int peer = (rank + step) % size;
            if (k >= message_count(round, rank, peer))
                continue;
            int length = message_length(round, rank, peer, k);
            out[peer][k] = malloc((size_t)length + 1);
            fill_message(out[peer][k], length, rank + 3 * k);
            MPI_Isend(out[peer][k], length, MPI_BYTE, peer, round, MPI_COMM_WORLD, &requests[n++]);
        }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < size; peer++) {
        for (int k = 0; k < message_count(round, peer, rank); k++) {
            check_message(in[peer][k], message_length(round, peer, rank, k), peer + 3 * k);
            free(in[peer][k]);
        }
        for (int k = 0; k < message_count(round, rank, peer); k++)
            free(out[peer][k]);
    }
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++)
        run_round(round, mpitest_rank, mpitest_size);
    return mpitest_end();
}
