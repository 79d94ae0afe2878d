/* soak.c: mixed traffic for a given time: messages of all sizes between all pairs, many messages to one rank,
 * collectives, communicators, datatypes and windows that are created and freed, newly allocated buffers. Every byte
 * is checked. Rank 0 regularly prints a line with the memory of every rank:
 *
 *     soak SECONDS rounds bytes opened closed | of each rank: KiB resident, KiB of the heap in use, KiB of holes
 *
 *     soak SECONDS [LINES] [SEED]
 * All ranks draw the same random numbers, so that they agree on the next operation.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <stdint.h>
#include <unistd.h>

#include "mpitest.h"

enum { LENGTH_MAX = 1 << 20, FLOOD = 40 };

static uint64_t random_state;
static unsigned long long total_bytes;

static uint32_t random_below(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 16) % below);
}

/* Returns a random size; small and large sizes are equally probable. */
static int draw_size(void)
{
    uint32_t size = 1u << random_below(21);
    return (int)(size / 2 + random_below(size) / 2);
}

static unsigned char *make_message(int length, int seed)
{
    unsigned char *at = malloc((size_t)length + 1);
    if (!at)
        MPI_Abort(MPI_COMM_WORLD, 4);
    for (int i = 0; i < length; i++)
        at[i] = (unsigned char)(seed * 13 + i * 3 + (i >> 8));
    return at;
}

static void check_message(const unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++)
        if (at[i] != (unsigned char)(seed * 13 + i * 3 + (i >> 8))) {
            EXPECT_EQ(at[i], (unsigned char)(seed * 13 + i * 3 + (i >> 8)));
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    total_bytes += (unsigned long long)length;
}

/* Every rank sends to the rank at a random distance. */
static void test_shift(int seed)
{
    int distance = 1 + (int)random_below((uint32_t)mpitest_size - 1), length = draw_size();
    int to = (mpitest_rank + distance) % mpitest_size;
    int from = (mpitest_rank + mpitest_size - distance) % mpitest_size;
    unsigned char *out = make_message(length, seed + mpitest_rank), *in = make_message(length, 0);
    MPI_Sendrecv(out, length, MPI_BYTE, to, 1, in, length, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    check_message(in, length, seed + from);
    free(out);
    free(in);
}

/* All ranks send to one rank. The tag distinguishes messages of ranks that are a round ahead. */
static void test_flood(int seed)
{
    int target = (int)random_below((uint32_t)mpitest_size), length = draw_size() % 4096;
    unsigned char *out = make_message(length, seed), *in = make_message(length, 0);
    MPI_Request requests[FLOOD];
    if (mpitest_rank == target)
        for (int i = 0; i < FLOOD * (mpitest_size - 1); i++) {
            MPI_Recv(in, length, MPI_BYTE, MPI_ANY_SOURCE, 10 + seed, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_message(in, length, seed);
        }
    else {
        for (int i = 0; i < FLOOD; i++)
            MPI_Isend(out, length, MPI_BYTE, target, 10 + seed, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(FLOOD, requests, MPI_STATUSES_IGNORE);
    }
    free(out);
    free(in);
}

static void test_collective(int seed)
{
    int length = draw_size(), root = (int)random_below((uint32_t)mpitest_size), each = length / mpitest_size;
    unsigned char *data = make_message(length, mpitest_rank == root ? seed : 0);
    int mine = mpitest_rank + seed, sum = 0;
    MPI_Bcast(data, length, MPI_BYTE, root, MPI_COMM_WORLD);
    check_message(data, length, seed);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(sum, mpitest_size * seed + mpitest_size * (mpitest_size - 1) / 2);
    unsigned char *out = make_message(each * mpitest_size, 0), *in = make_message(each * mpitest_size, 1);
    memset(out, mpitest_rank, (size_t)each * (size_t)mpitest_size);
    MPI_Alltoall(out, each, MPI_BYTE, in, each, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < each * mpitest_size; i += 97)
        EXPECT_EQ(in[i], i / each);
    free(data);
    free(out);
    free(in);
}

/* Creates, uses and frees communicators and a datatype with gaps. */
static void test_objects(int seed)
{
    MPI_Comm part;
    MPI_Datatype column;
    int matrix[64][64], got[64] = {0}, rank, size;
    MPI_Comm_split(MPI_COMM_WORLD, (mpitest_rank + seed) % 2, mpitest_rank, &part);
    MPI_Comm_rank(part, &rank);
    MPI_Comm_size(part, &size);
    MPI_Type_vector(64, 1, 64, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < 64; i++)
        matrix[i][5] = seed + i + rank;
    MPI_Sendrecv(&matrix[0][5], 1, column, (rank + 1) % size, 3, got, 64, MPI_INT, (rank + size - 1) % size,
                 3, part, MPI_STATUS_IGNORE);
    for (int i = 0; i < 64; i++)
        EXPECT_EQ(got[i], seed + i + (rank + size - 1) % size);
    MPI_Type_free(&column);
    MPI_Comm_free(&part);
}

/* Creates a window, which the left neighbour writes, and frees it. */
static void test_windows(int seed)
{
    const int length = draw_size(), right = (mpitest_rank + 1) % mpitest_size;
    const int left = (mpitest_rank + mpitest_size - 1) % mpitest_size, ours = (int)random_below(2);
    unsigned char *out = make_message(length, seed + mpitest_rank),
                  *in = ours ? NULL : make_message(length, 0);
    MPI_Win win;
    if (ours)
        MPI_Win_allocate(length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &in, &win);
    else
        MPI_Win_create(in, length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Put(out, length, MPI_BYTE, right, 0, length, MPI_BYTE, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    check_message(in, length, seed + left);
    MPI_Win_free(&win);
    free(out);
    if (!ours)
        free(in);
}

enum { OPENED, CLOSED, COUNTERS };
static MPI_T_pvar_session session;
static MPI_T_pvar_handle counters[COUNTERS];

static void start_counting(void)
{
    static const char *const names[] = {"ib_connections_opened", "ib_connections_closed"};
    int provided, index, count;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < COUNTERS; i++) {
        EXPECT_EQ(MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
        MPI_T_pvar_handle_alloc(session, index, NULL, &counters[i], &count);
        MPI_T_pvar_start(session, counters[i]);
    }
}

static unsigned long long sum_counter(int which)
{
    unsigned long long value = 0, sum = 0;
    MPI_T_pvar_read(session, counters[which], &value);
    MPI_Allreduce(&value, &sum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

enum { RESIDENT, LIVE, HOLES, MEASURES };

/* Returns the resident memory of this process in KiB, without shared memory. */
static long resident_kib(void)
{
    long pages = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*d %ld %ld", &pages, &shared) != 2)
        pages = shared = 0;
    if (f)
        fclose(f);
    return (pages - shared) * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Heap in KiB: memory allocated by malloc, and freed memory that cannot be returned to the system because
 * a later block is in use. 0 if the C library does not report it. */
static void measure_heap(long *live, long *holes)
{
    *live = *holes = 0;
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 m = mallinfo2();
    *live = (long)((m.uordblks + m.hblkhd) / 1024);
    *holes = (long)((m.fordblks - m.keepcost) / 1024);
#endif
}

/* Prints the memory of all ranks at a moment when no message is in flight. */
static void print_report(double since, int rounds)
{
    long mine[MEASURES], all[256 * MEASURES] = {0};
    MPI_Barrier(MPI_COMM_WORLD);
    mine[RESIDENT] = resident_kib();
    measure_heap(&mine[LIVE], &mine[HOLES]);
    unsigned long long total = 0, opened = sum_counter(OPENED), closed = sum_counter(CLOSED);
    MPI_Reduce(&total_bytes, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Gather(mine, MEASURES, MPI_LONG, all, MEASURES, MPI_LONG, 0, MPI_COMM_WORLD);
    if (mpitest_rank != 0)
        return;
    printf("soak %.1f %d %llu %llu %llu |", since, rounds, total, opened, closed);
    for (int i = 0; i < MEASURES * mpitest_size; i++)
        printf(" %ld", all[i]);
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static void (*const kinds[])(int) = {test_shift, test_shift,      test_shift,   test_shift,
                                         test_flood, test_collective, test_objects, test_windows};
    double seconds = argc > 1 ? atof(argv[1]) : 60, lines = argc > 2 ? atof(argv[2]) : 60;
    random_state = 88172645463325252ull ^ (uint64_t)(argc > 3 ? atoll(argv[3]) : 1) << 32;
    start_counting();
    mpitest_begin(&argc, &argv);
    double began = MPI_Wtime(), next = seconds / lines, now = 0;
    for (int round = 0; now < seconds; round++) {
        kinds[random_below(sizeof(kinds) / sizeof(kinds[0]))](round % 1000);
        if (round % 16 != 0)
            continue;
        now = MPI_Wtime() - began;
        MPI_Bcast(&now, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (now >= next) {
            print_report(now, round);
            next = now + seconds / lines;
        }
    }
    MPI_T_finalize();
    return mpitest_end();
}
