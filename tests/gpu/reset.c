/* reset.c: the program destroys its GPU context before MPI_Finalize (cudaDeviceReset), after messages of every path: those in host memory go
 * on, and MPI_Finalize returns.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "area.h"
#include "program.h"
#include "mpitest.h"

static void exchange(enum area_kind kind, size_t size)
{
    struct area out = area_new(kind, size), in = area_new(kind, size);
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

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    if (!area_start()) {
        MPI_Finalize();
        return 77;
    }
    exchange(AREA_DEVICE, 100);
    exchange(AREA_DEVICE, 3000000);
    exchange(AREA_POOL, 3000000);
    exchange(AREA_VMM, 3000000);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(cu.reset(0), CUDA_OK);
    exchange(AREA_HOST, 100);
    exchange(AREA_HOST, 3000000);
    return mpitest_end();
}
