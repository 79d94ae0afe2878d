/* fresh.c: large messages in new memory each time, then repeatedly in the same memory; every byte is
 * checked. Rank 0 prints how many messages of each kind used the pipeline protocol, by the counters of all
 * ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "mpitest.h"

enum { ROUNDS = 24, BYTES = (1 << 20) + 12345, SHIFT = 777 };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle;

static void start_counting(void)
{
    int provided, index, count;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    EXPECT_EQ(MPI_T_pvar_get_index("p2p_rendezvous_pipe", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_start(session, handle);
}

static unsigned long long count_pipelined(void)
{
    unsigned long long mine = 0, all = 0;
    MPI_T_pvar_read(session, handle, &mine);
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static char *map_new_memory(void)
{
    char *p = mmap(NULL, BYTES + SHIFT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(p != MAP_FAILED);
    return p;
}

/* Exchanges a message in both directions; the sender's data is not at the beginning of a page. */
static void exchange_message(char *out, char *in, int round)
{
    const int other = 1 - mpitest_rank;
    int wrong = 0;
    for (int i = 0; i < BYTES; i++)
        out[SHIFT + i] = (char)(i * 7 + i / 4096 + round + mpitest_rank);
    if (mpitest_rank == 0)
        MPI_Send(out + SHIFT, BYTES, MPI_CHAR, other, 1, MPI_COMM_WORLD);
    MPI_Recv(in, BYTES, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (mpitest_rank == 1)
        MPI_Send(out + SHIFT, BYTES, MPI_CHAR, other, 1, MPI_COMM_WORLD);
    for (int i = 0; i < BYTES; i++)
        wrong += in[i] != (char)(i * 7 + i / 4096 + round + other);
    EXPECT_EQ(wrong, 0);
}

int main(int argc, char **argv)
{
    start_counting();
    mpitest_begin(&argc, &argv);
    const unsigned long long none = count_pipelined();
    for (int round = 0; round < ROUNDS; round++) {
        char *out = map_new_memory(), *in = map_new_memory();
        exchange_message(out, in, round);
        munmap(out, BYTES + SHIFT);
        munmap(in, BYTES + SHIFT);
    }
    const unsigned long long cold = count_pipelined();
    char *out = map_new_memory(), *in = map_new_memory();
    for (int round = 0; round < ROUNDS; round++)
        exchange_message(out, in, round);
    const unsigned long long warm = count_pipelined();
    for (int round = 0; round < ROUNDS; round++)
        exchange_message(out, in, round);
    const unsigned long long late = count_pipelined();
    if (mpitest_rank == 0)
        printf("new %llu again %llu later %llu\n", cold - none, warm - cold, late - warm);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return mpitest_end();
}
