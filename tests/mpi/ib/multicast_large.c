/* multicast_large.c: broadcasts by multicast of 1 byte to 1 MiB from every root and of 16 MiB from one
 * root; with the argument `all` of 64 MiB from every root. Every byte is checked, and that multicast was
 * used.
 *
 * ranks: 4
 * nodes: only 4
 * env: FISHPLATE_COLL=bcast=multicast:max=64m
 * also: FISHPLATE_COLL=bcast=multicast:max=64m:coroots=2:aggregate=10
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"

enum { LENGTH_MAX = 64 << 20, LENGTH_FROM_EVERY_ROOT = 1 << 20, LENGTH_BY_DEFAULT = 16 << 20 };

static unsigned char *data;

/* Word i of the data: all words differ, so that a fragment at a wrong offset is detected. */
static uint64_t data_word(int root, size_t i)
{
    return (i + 1) * 0x9e3779b97f4a7c15ull + (uint64_t)root;
}

static void test_broadcast(int root, size_t bytes)
{
    long wrong = 0;
    const size_t words = bytes / sizeof(uint64_t);
    memset(data, mpitest_rank == root ? root + 1 : 0xee, bytes);
    for (size_t i = 0; mpitest_rank == root && i < words; i++)
        memcpy(data + i * sizeof(uint64_t), &(uint64_t){data_word(root, i)}, sizeof(uint64_t));
    MPI_Bcast(data, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    for (size_t i = 0; i < words; i++)
        wrong += memcmp(data + i * sizeof(uint64_t), &(uint64_t){data_word(root, i)}, sizeof(uint64_t)) != 0;
    for (size_t i = words * sizeof(uint64_t); i < bytes; i++)
        wrong += data[i] != root + 1;
    EXPECT_EQ(wrong, 0);
}

int main(int argc, char **argv)
{
    int calls = 0;
    counters_begin();
    MPI_T_pvar_handle done = counter_open("coll_bcast_multicast");
    mpitest_begin(&argc, &argv);
    data = malloc(LENGTH_MAX);
    if (!data)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(data, 1, LENGTH_MAX);
    for (size_t bytes = 1; bytes <= LENGTH_FROM_EVERY_ROOT; bytes *= 4)
        for (int root = 0; root < mpitest_size; root++, calls++)
            test_broadcast(root, bytes);
    for (int root = 0; root < (argc > 1 ? mpitest_size : 1); root++, calls++)
        test_broadcast(root, argc > 1 ? LENGTH_MAX : LENGTH_BY_DEFAULT);
    EXPECT_EQ(read_counter(done), calls);
    free(data);
    counters_end();
    return mpitest_end();
}
