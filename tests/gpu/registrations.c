/* registrations.c: GPU memory stays registered with the adapter while the program uses several buffers in
 * turns, and no longer when the program frees it: a registration would keep the memory allocated. On
 * softcuda with SOFTCUDA_KEEP_ADDRESSES no memory hook reports that memory is freed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "area.h"
#include "counters.h"

#define BYTES       1000000
#define TURNS       3
#define ALLOCATIONS 40
#define POLLS       2000000 /* far more than the library needs to check all allocations */

int main(int argc, char **argv)
{
    struct area areas[ALLOCATIONS];
    int arrived;
    counters_begin();
    mpitest_begin(&argc, &argv);
    if (!area_load_cuda()) {
        MPI_Finalize();
        return 77;
    }
    MPI_T_pvar_handle registered = counter_open("reg_misses"), dropped = counter_open("reg_invalidations"),
                      dmabufs = counter_open("reg_gpu_dmabuf"), peers = counter_open("reg_gpu_peermem");
    const unsigned long long before = read_counter(registered) - read_counter(dropped);
    for (int i = 0; i < ALLOCATIONS; i++)
        areas[i] = area_alloc(AREA_DEVICE, BYTES);
    for (int i = 0; i < TURNS * ALLOCATIONS; i++)
        if (mpitest_rank == 0)
            MPI_Send(areas[i % ALLOCATIONS].at, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(areas[i % ALLOCATIONS].at, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQ(read_counter(registered) - read_counter(dropped), before + ALLOCATIONS);
    /* Adjacent allocations share pages: up to two registrations each. */
    EXPECT(read_counter(dmabufs) + read_counter(peers) <= 2 * ALLOCATIONS);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ALLOCATIONS; i++)
        area_free(&areas[i]);
    for (int i = 0; i < POLLS && read_counter(registered) - read_counter(dropped) > before; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
    EXPECT_EQ(read_counter(registered) - read_counter(dropped), before);
    MPI_Barrier(MPI_COMM_WORLD);
    const int rc = mpitest_end();
    counters_end();
    return rc;
}
