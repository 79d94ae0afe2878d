/* multicast_tuned.c: communicators on several nodes measure multicast as one candidate of broadcasts,
 * allgathers and allreduces. All ranks choose the same, every byte arrives before, during and after the
 * measurements, with nonblocking broadcasts in flight, and communicators on two nodes do not measure
 * multicast. With a small share of the time, communicators are freed before the measurements are complete.
 *
 * ranks: 6
 * nodes: only 3
 * env: FISHPLATE_COLL_TRY=100
 * also: FISHPLATE_COLL_TRY=2
 * also: FISHPLATE_COLL_TRY=0
 * also: FISHPLATE_COLL_TRY=100 SOFTIB_FABRIC=ud_drop=0.1,seed=4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "late.h"

enum { CALLS = 180, BYTES_MAX = 100000 }; /* CALLS: 36 calls of each size */

static const int sizes[] = {1, 256, 5000, 60000, BYTES_MAX};
static unsigned char data[BYTES_MAX], other[BYTES_MAX];

static unsigned char data_byte(int call, int i)
{
    return (unsigned char)(call * 7 + i * 3 + (i >> 8));
}

static void fill_message(unsigned char *b, int call, int n, int is_root)
{
    for (int i = 0; i < n; i++)
        b[i] = is_root ? data_byte(call, i) : 0;
}

static void check_message(const unsigned char *b, int call, int n)
{
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += b[i] != data_byte(call, i);
    EXPECT_EQ(wrong, 0);
}

static void run_all_operations(MPI_Comm comm, int rank, int size, int call)
{
    int ranks[64], sum;
    const int mine = rank + call;
    MPI_Allgather(&mine, 1, MPI_INT, ranks, 1, MPI_INT, comm);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    for (int r = 0; r < size; r++)
        EXPECT_EQ(ranks[r], r + call);
    EXPECT_EQ(sum, size * call + size * (size - 1) / 2);
}

static void test_broadcasts(MPI_Comm comm, unsigned *random_seed)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int call = 0; call < CALLS; call++) {
        const int n = sizes[call % 5], root = call % size;
        MPI_Request request;
        fill_message(data, call, n, rank == root);
        fill_message(other, call + 1, 3000, rank == 0);
        MPI_Ibcast(other, 3000, MPI_BYTE, 0, comm, &request);
        delay_randomly(random_seed);
        MPI_Bcast(data, n, MPI_BYTE, root, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        run_all_operations(comm, rank, size, call);
        check_message(data, call, n);
        check_message(other, call + 1, 3000);
    }
}

static void expect_same_at_all_ranks(unsigned long long value)
{
    unsigned long long ends[2] = {value, ~value};
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    EXPECT_EQ(ends[0], ~ends[1]);
}

/* Checks the text of the MPI_T variable, which names the operations with multicast among their candidates. */
static void check_text(int share)
{
    static char text[64000];
    MPI_T_pvar_handle handle;
    int index, count = 0, with = 0;
    EXPECT_EQ(MPI_T_pvar_get_index("coll_choices", MPI_T_PVAR_CLASS_GENERIC, &index), MPI_SUCCESS);
    MPI_T_pvar_handle_alloc(counters_session, index, NULL, &handle, &count);
    EXPECT(count > 0 && count < (int)sizeof(text));
    EXPECT_EQ(MPI_T_pvar_read(counters_session, handle, text), MPI_SUCCESS);
    MPI_T_pvar_handle_free(counters_session, &handle);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const int has = strstr(line, " multicast ") != NULL;
        with += has;
        EXPECT(!has || strstr(line, "6 ranks on 3 nodes: "));
    }
    EXPECT(share != 100 || with > 0);
}

int main(int argc, char **argv)
{
    const char *text = getenv("FISHPLATE_COLL_TRY");
    const int share = text ? atoi(text) : 0;
    counters_begin();
    MPI_T_pvar_handle tuned = counter_open("coll_tuned"), changed = counter_open("coll_tuned_changed"),
                      multicasts = counter_open("coll_bcast_multicast");
    mpitest_begin(&argc, &argv);
    unsigned random_seed = 7u + (unsigned)mpitest_rank;
    for (int round = 0; round < 2; round++) {
        MPI_Comm twin, two;
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        MPI_Comm_split(MPI_COMM_WORLD, mpitest_rank < 4 ? 0 : MPI_UNDEFINED, 0, &two);
        test_broadcasts(twin, &random_seed);
        /* In the second round the numbers differ: some ranks have also measured communicators on two
         * nodes. */
        if (round == 0) {
            expect_same_at_all_ranks(read_counter(tuned));
            expect_same_at_all_ranks(read_counter(changed));
        }
        const unsigned long long before = read_counter(multicasts);
        if (share == 100 && round == 0)
            EXPECT(read_counter(tuned) > 0 && before > 0);
        if (share == 0)
            EXPECT(read_counter(tuned) == 0 && before == 0);
        if (two != MPI_COMM_NULL) {
            test_broadcasts(two, &random_seed);
            EXPECT_EQ(read_counter(multicasts), before);
            MPI_Comm_free(&two);
        }
        MPI_Comm_free(&twin);
    }
    check_text(share);
    counters_end();
    return mpitest_end();
}
