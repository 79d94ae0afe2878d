/* traffic.c: the program of the fault matrix: traffic of one kind with every byte checked, during which
 * one rank causes a fault. Each rank that finishes prints one line.
 *
 *     faults_traffic small|large|flood|collectives|start|finalize
 *
 * The environment selects the damage: FAULTS_WHAT (damage.c), FAULTS_RANK, FAULTS_ROUND and FAULTS_DELAY,
 * the microseconds after which it happens at the start and at the end of the job.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "damage.h"

enum { ROUNDS = 8, MESSAGES_MAX = 8, RANKS = 8, LENGTH_MAX = 300001, FLOOD = 48 };

static const int small_sizes[] = {0, 8, 100, 1000, 2500, 7000};
static const int large_sizes[] = {70000, LENGTH_MAX};

static int rank, size;
static long long right_bytes;

static unsigned char expected_byte(int seed, int i)
{
    return (unsigned char)(seed * 7 + i * 3 + (i >> 8));
}

static void fill_message(unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++)
        at[i] = expected_byte(seed, i);
}

static void check_message(const unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++)
        if (at[i] != expected_byte(seed, i)) {
            printf("WRONG BYTES: rank %d has %u at byte %d of %d, not %u\n", rank, at[i], i, length,
                   expected_byte(seed, i));
            fflush(stdout);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    right_bytes += length;
}

static int message_seed(int from, int to, int round, int k)
{
    return from + 5 * to + 11 * round + 31 * k;
}

static bool causes_damage(int round)
{
    return rank == damage_rank() && round == damage_round();
}

/* Every rank sends to every other rank at once; the damage happens when half of the messages are posted. */
static void exchange_all_to_all(int round, const int *sizes, int kinds)
{
    static unsigned char out[RANKS][MESSAGES_MAX][LENGTH_MAX], in[RANKS][MESSAGES_MAX][LENGTH_MAX];
    MPI_Request requests[2 * RANKS * MESSAGES_MAX];
    int n = 0;
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; peer != rank && k < kinds; k++) {
            memset(in[peer][k], 0xa5, (size_t)sizes[k]);
            MPI_Irecv(in[peer][k], sizes[k], MPI_BYTE, peer, k, MPI_COMM_WORLD, &requests[n++]);
        }
    for (int k = 0; k < kinds; k++) {
        if (k == kinds / 2 && causes_damage(round))
            damage_cause_now();
        for (int peer = 0; peer < size; peer++) {
            if (peer == rank)
                continue;
            fill_message(out[peer][k], sizes[k], message_seed(rank, peer, round, k));
            MPI_Isend(out[peer][k], sizes[k], MPI_BYTE, peer, k, MPI_COMM_WORLD, &requests[n++]);
        }
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; peer != rank && k < kinds; k++)
            check_message(in[peer][k], sizes[k], message_seed(peer, rank, round, k));
}

static void exchange_small(int round)
{
    exchange_all_to_all(round, small_sizes, (int)(sizeof(small_sizes) / sizeof(small_sizes[0])));
}

static void exchange_large(int round)
{
    exchange_all_to_all(round, large_sizes, (int)(sizeof(large_sizes) / sizeof(large_sizes[0])));
}

/* All ranks send to one rank, which has posted no receives, more than its queues hold. */
static void flood_one_rank(int round)
{
    static unsigned char out[FLOOD][2048], in[2048];
    MPI_Request requests[FLOOD];
    int target = round % size;
    if (rank == target) {
        if (causes_damage(round))
            damage_cause_now();
        for (int i = 0; i < FLOOD * (size - 1); i++) {
            MPI_Status s;
            int count;
            MPI_Recv(in, sizeof(in), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
            MPI_Get_count(&s, MPI_BYTE, &count);
            check_message(in, count, message_seed(s.MPI_SOURCE, rank, round, s.MPI_TAG));
        }
        return;
    }
    for (int k = 0; k < FLOOD; k++) {
        int length = (k * 131) % (int)sizeof(in);
        if (k == FLOOD / 2 && causes_damage(round))
            damage_cause_now();
        fill_message(out[k], length, message_seed(rank, target, round, k));
        MPI_Isend(out[k], length, MPI_BYTE, target, k, MPI_COMM_WORLD, &requests[k]);
    }
    MPI_Waitall(FLOOD, requests, MPI_STATUSES_IGNORE);
}

static void test_allreduce(int round, int count)
{
    static int in[40000], out[40000];
    for (int i = 0; i < count; i++)
        in[i] = rank * 3 + i + round;
    MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        if (out[i] != 3 * size * (size - 1) / 2 + size * (i + round)) {
            printf("WRONG BYTES: rank %d has %d in element %d of a sum of %d\n", rank, out[i], i, count);
            fflush(stdout);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    right_bytes += count * (long long)sizeof(int);
}

static void test_collectives(int round)
{
    static unsigned char data[RANKS][3000], got[RANKS][3000], all[LENGTH_MAX];
    test_allreduce(round, 1);
    if (causes_damage(round))
        damage_cause_now();
    test_allreduce(round, 700);
    for (int peer = 0; peer < size; peer++)
        fill_message(data[peer], 3000, message_seed(rank, peer, round, 0));
    MPI_Alltoall(data, 3000, MPI_BYTE, got, 3000, MPI_BYTE, MPI_COMM_WORLD);
    for (int peer = 0; peer < size; peer++)
        check_message(got[peer], 3000, message_seed(peer, rank, round, 0));
    if (rank == round % size)
        fill_message(all, LENGTH_MAX, round);
    MPI_Bcast(all, LENGTH_MAX, MPI_BYTE, round % size, MPI_COMM_WORLD);
    check_message(all, LENGTH_MAX, round);
    test_allreduce(round, 40000);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void run_rounds(void (*one)(int))
{
    for (int round = 0; round < ROUNDS; round++)
        one(round);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*one)(int);
    } kinds[] = {{"small", exchange_small},
                 {"large", exchange_large},
                 {"flood", flood_one_rank},
                 {"collectives", test_collectives}};
    const char *kind = argc > 1 ? argv[1] : "";
    if (strcmp(kind, "start") == 0)
        damage_cause_later();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > RANKS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kind, kinds[i].name) == 0)
            run_rounds(kinds[i].one);
    if (strcmp(kind, "start") == 0 || strcmp(kind, "finalize") == 0) {
        exchange_small(ROUNDS); /* a round without damage */
        exchange_large(ROUNDS);
    }
    printf("rank %d: %lld bytes right\n", rank, right_bytes);
    fflush(stdout);
    if (strcmp(kind, "finalize") == 0)
        damage_cause_later();
    MPI_Finalize();
    return 0;
}
