/* storm_rails.c: all ranks exchange messages of all sizes with all others, in the order they were sent and
 * with every byte checked, and access each other's windows, for a time or a number of rounds, while
 * storm_rails.py takes ports down and up. The sizes follow from the seed, so that a run can be repeated.
 * In every round, or every FAULTS_ROUND rounds, another rank causes the fault that the environment selects
 * (../faults/damage.c).
 *     storm_rails SECONDS ROUNDS SEED      ends at the first of both limits; 0: no limit
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../faults/damage.h"

enum { MESSAGES = 4, LENGTH_MAX = 512 * 1024, BLOCK = 128 * 1024 };

static int rank, size;
static unsigned long long wrong;

static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xd1b54a32d192ed03u;
    return x ^ x >> 32;
}

static uint64_t message_seed(uint64_t seed, uint64_t round, int from, int to, int nth)
{
    return mix_bits(seed +
                    mix_bits(round * 4096 + (uint64_t)from * 64 + (uint64_t)to + ((uint64_t)nth << 40)));
}

/* The length of a message: mostly small, some large enough for every protocol. */
static int message_length(uint64_t name)
{
    static const int most[] = {16, 1024, 16 * 1024, 64 * 1024, 128 * 1024, LENGTH_MAX};
    return (int)(mix_bits(name) % (uint64_t)most[name % 6]);
}

static void fill_message(uint64_t *p, int bytes, uint64_t name)
{
    for (int i = 0; i < bytes / 8; i++)
        p[i] = name + (uint64_t)i * 0x9e3779b97f4a7c15u;
    memset((char *)p + bytes / 8 * 8, (int)(name & 0xff), (size_t)(bytes % 8));
}

static void check_message(const uint64_t *p, int bytes, uint64_t name, uint64_t round, int from)
{
    unsigned long long bad = 0;
    for (int i = 0; i < bytes / 8; i++)
        bad += p[i] != name + (uint64_t)i * 0x9e3779b97f4a7c15u;
    for (int i = bytes / 8 * 8; i < bytes; i++)
        bad += ((const unsigned char *)p)[i] != (unsigned char)(name & 0xff);
    if (bad && wrong == 0)
        fprintf(stderr, "rank %d: round %llu, from %d: a message of %d bytes is not what was sent\n", rank,
                (unsigned long long)round, from, bytes);
    wrong += bad;
}

/* True if this rank causes the fault in this round; the first one is FAULTS_RANK in round FAULTS_ROUND. */
static bool is_own_turn(uint64_t round)
{
    const int every = damage_round();
    if (every <= 0 || round % (uint64_t)every != 0 || round == 0)
        return false;
    return (uint64_t)rank == ((uint64_t)damage_rank() + round / (uint64_t)every - 1) % (uint64_t)size;
}

/* Sends several messages to every rank; length and contents of each message depend on its position, so
 * that the order is checked. */
static void exchange_messages(uint64_t seed, uint64_t round, uint64_t **out, uint64_t **in)
{
    MPI_Request *requests = malloc(sizeof(*requests) * (size_t)(2 * size * MESSAGES));
    MPI_Status status;
    int n = 0;
    for (int r = 0; r < size; r++)
        for (int k = 0; k < MESSAGES; k++)
            MPI_Irecv(in[r * MESSAGES + k], LENGTH_MAX, MPI_BYTE, r, 7, MPI_COMM_WORLD, &requests[n++]);
    for (int r = 0; r < size; r++)
        for (int k = 0; k < MESSAGES; k++) {
            uint64_t name = message_seed(seed, round, rank, r, k);
            fill_message(out[r * MESSAGES + k], message_length(name), name);
            MPI_Isend(out[r * MESSAGES + k], message_length(name), MPI_BYTE, r, 7, MPI_COMM_WORLD,
                      &requests[n++]);
            if (r == size / 2 && k == 0 && is_own_turn(round))
                damage_cause_now();
        }
    for (int i = 0; i < size * MESSAGES; i++) {
        int from = i / MESSAGES, bytes;
        uint64_t name = message_seed(seed, round, from, rank, i % MESSAGES);
        MPI_Wait(&requests[i], &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        if (bytes != message_length(name)) {
            fprintf(stderr,
                    "rank %d: round %llu, from %d: %d bytes instead of %d: lost, twice or out of order\n",
                    rank, (unsigned long long)round, from, bytes, message_length(name));
            wrong++;
        } else {
            check_message(in[i], bytes, name, round, from);
        }
    }
    MPI_Waitall(n - size * MESSAGES, requests + size * MESSAGES, MPI_STATUSES_IGNORE);
    free(requests);
}

/* Exchanges a block with all ranks by MPI_Alltoall. */
static void test_collective(uint64_t seed, uint64_t round, uint64_t *out, uint64_t *in, int block)
{
    for (int r = 0; r < size; r++)
        fill_message(out + (size_t)r * (size_t)block / 8, block, message_seed(seed, round, rank, r, 9));
    MPI_Alltoall(out, block, MPI_BYTE, in, block, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        check_message(in + (size_t)r * (size_t)block / 8, block, message_seed(seed, round, r, rank, 9), round,
                      r);
}

static int put_length(uint64_t name)
{
    return message_length(name) % BLOCK;
}

/* Every rank puts a block into the memory of every rank, reads it back and adds to a counter; then all
 * ranks take the lock of one rank and change a number there without atomics. Each window contains a block
 * for each rank, the counter, and the number. */
static void test_windows(uint64_t seed, uint64_t round, MPI_Win win, const char *memory, uint64_t **out,
                         uint64_t **in)
{
    const MPI_Aint counts = (MPI_Aint)size * BLOCK, one_of = (MPI_Aint)(round % (uint64_t)size);
    long one = 1, old, number;
    MPI_Win_lock_all(0, win);
    for (int r = 0; r < size; r++) {
        uint64_t name = message_seed(seed, round, rank, r, 10);
        fill_message(out[r], put_length(name), name);
        MPI_Put(out[r], put_length(name), MPI_BYTE, r, (MPI_Aint)rank * BLOCK, put_length(name), MPI_BYTE,
                win);
        MPI_Fetch_and_op(&one, &old, MPI_LONG, r, counts, MPI_SUM, win);
    }
    MPI_Win_flush_all(win);
    for (int r = 0; r < size; r++) {
        int bytes = put_length(message_seed(seed, round, rank, r, 10));
        MPI_Get(in[r], bytes, MPI_BYTE, r, (MPI_Aint)rank * BLOCK, bytes, MPI_BYTE, win);
    }
    MPI_Win_unlock_all(win);
    for (int r = 0; r < size; r++) {
        uint64_t name = message_seed(seed, round, rank, r, 10);
        check_message(in[r], put_length(name), name, round, r);
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (int)one_of, 0, win);
    MPI_Get(&number, 1, MPI_LONG, (int)one_of, counts + 8, 1, MPI_LONG, win);
    MPI_Win_flush((int)one_of, win);
    number++;
    MPI_Put(&number, 1, MPI_LONG, (int)one_of, counts + 8, 1, MPI_LONG, win);
    MPI_Win_unlock((int)one_of, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) {
        uint64_t name = message_seed(seed, round, from, rank, 10);
        check_message((const uint64_t *)(const void *)(memory + (size_t)from * BLOCK), put_length(name), name,
                      round, from);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The two other kinds of synchronisation: every rank puts a block into the next rank's memory between
 * fences, and between post and wait. */
static void test_epochs(uint64_t seed, uint64_t round, MPI_Win win, const char *memory, uint64_t *out)
{
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Group all, to, from;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &next, &to);
    MPI_Group_incl(all, 1, &before, &from);
    for (int fences = 0; fences < 2; fences++) {
        const uint64_t name = message_seed(seed, round, rank, next, 11 + fences);
        const uint64_t comes = message_seed(seed, round, before, rank, 11 + fences);
        fill_message(out, put_length(name), name);
        if (fences) {
            MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
        } else {
            MPI_Win_post(from, 0, win);
            MPI_Win_start(to, 0, win);
        }
        MPI_Put(out, put_length(name), MPI_BYTE, next, (MPI_Aint)rank * BLOCK, put_length(name), MPI_BYTE,
                win);
        if (fences) {
            MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        } else {
            MPI_Win_complete(win);
            MPI_Win_wait(win);
        }
        check_message((const uint64_t *)(const void *)(memory + (size_t)before * BLOCK), put_length(comes),
                      comes, round, before);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
}

static void check_counts(uint64_t rounds, const char *memory)
{
    const long *count = (const long *)(const void *)(memory + (size_t)size * BLOCK);
    const uint64_t all = (uint64_t)size;
    const long locked = (long)((rounds / all + ((uint64_t)rank < rounds % all)) * all);
    if (count[0] != (long)(rounds * all) || count[1] != locked) {
        fprintf(stderr, "rank %d: its window counts %ld operations and %ld locks instead of %ld and %ld\n",
                rank, count[0], count[1], (long)(rounds * all), locked);
        wrong++;
    }
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 0;
    unsigned long long rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 10,
                       seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    uint64_t round = 0;
    int more = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int n = size * MESSAGES;
    uint64_t **out = calloc((size_t)n, sizeof(*out)), **in = calloc((size_t)n, sizeof(*in));
    uint64_t *all_out = malloc((size_t)size * 65536), *all_in = malloc((size_t)size * 65536);
    for (int i = 0; i < n; i++) {
        out[i] = malloc(LENGTH_MAX);
        in[i] = malloc(LENGTH_MAX);
    }
    char *memory;
    MPI_Win win;
    MPI_Win_allocate((MPI_Aint)size * BLOCK + 16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, (size_t)size * BLOCK + 16);
    MPI_Barrier(MPI_COMM_WORLD);
    double end = MPI_Wtime() + seconds;
    for (; more; round++) {
        exchange_messages(seed, round, out, in);
        test_collective(seed, round, all_out, all_in, 8 << (mix_bits(seed + round) % 14));
        test_windows(seed, round, win, memory, out, in);
        test_epochs(seed, round, win, memory, out[0]);
        more = (rounds == 0 || round + 1 < rounds) && (seconds <= 0 || MPI_Wtime() < end);
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    check_counts(round, memory);
    MPI_Win_free(&win);
    unsigned long long all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("rounds %llu wrong %llu\n", (unsigned long long)round, all);
    for (int i = 0; i < n; i++) {
        free(out[i]);
        free(in[i]);
    }
    free(out);
    free(in);
    free(all_out);
    free(all_in);
    MPI_Finalize();
    return all != 0;
}
