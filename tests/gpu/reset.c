/* reset.c: the program resets its GPU context (cudaDeviceReset) after messages of every path. Messages in
 * host memory still work, and so do messages and reductions in GPU memory after the program has used the
 * GPU again. The program resets the context again before MPI_Finalize, which must return.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "area.h"
#include "program.h"
#include "mpitest.h"

static void exchange_message(enum area_kind kind, size_t size)
{
    struct area out = area_alloc(kind, size), in = area_alloc(kind, size);
    const int other = mpitest_size - 1 - mpitest_rank;
    char *expected = malloc(size), *seen = malloc(size);
    area_fill(&out, (unsigned)mpitest_rank);
    MPI_Sendrecv(out.at, (int)size, MPI_BYTE, other, 0, in.at, (int)size, MPI_BYTE, other, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    area_pattern(expected, size, (unsigned)other);
    area_read(&in, 0, seen, size);
    EXPECT(memcmp(expected, seen, size) == 0);
    free(expected);
    free(seen);
    area_free(&out);
    area_free(&in);
}

static void exchange_all_paths(void)
{
    exchange_message(AREA_DEVICE, 100);
    exchange_message(AREA_DEVICE, 3000000);
    exchange_message(AREA_DEVICE, 3000000); /* afterwards the memory is mapped or registered */
    exchange_message(AREA_POOL, 3000000);
    exchange_message(AREA_VMM, 3000000);
    exchange_message(AREA_VMM_PRIVATE, 3000000);
}

/* A sum of 4 MiB by kernels, with temporary device memory. */
static void sum_on_device(void)
{
    enum { COUNT = 1 << 20 };
    struct area in = area_alloc(AREA_DEVICE, COUNT * sizeof(int)),
                out = area_alloc(AREA_DEVICE, COUNT * sizeof(int));
    int *numbers = malloc(COUNT * sizeof(int)), wrong = 0;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i + mpitest_rank;
    area_write(&in, 0, numbers, COUNT * sizeof(int));
    MPI_Allreduce(in.at, out.at, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    area_read(&out, 0, numbers, COUNT * sizeof(int));
    for (int i = 0; i < COUNT; i++)
        wrong += numbers[i] != mpitest_size * i + mpitest_size * (mpitest_size - 1) / 2;
    EXPECT_EQ(wrong, 0);
    free(numbers);
    area_free(&in);
    area_free(&out);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    if (!area_load_cuda()) {
        MPI_Finalize();
        return 77;
    }
    for (int turn = 0; turn < 3; turn++) {
        exchange_all_paths();
        sum_on_device();
        MPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(cu.reset(0), CUDA_OK);
        exchange_message(AREA_HOST, 100);
        exchange_message(AREA_HOST, 3000000);
        if (turn < 2)
            program_start();
    }
    return mpitest_end();
}
