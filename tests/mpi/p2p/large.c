/* large.c: one message of more than 2 GiB by the `_c` calls, and its size in the status.
 *
 * ranks: 2
 * env: FISHPLATE_RENDEZVOUS=getcqe
 * alone: yes
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "mpitest.h"

int main(int argc, char **argv)
{
    const MPI_Count size = ((MPI_Count)1 << 31) + 100 * 1024 * 1024 + 7, step = 4093;
    mpitest_begin(&argc, &argv);
    unsigned char *buf =
        mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT(buf != MAP_FAILED);
    if (buf != MAP_FAILED && mpitest_rank == 0) {
        for (MPI_Count i = 0; i < size; i += step)
            buf[i] = (unsigned char)(i / step * 31 + 5);
        buf[size - 1] = 99;
        MPI_Send_c(buf, size, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
    } else if (buf != MAP_FAILED && mpitest_rank == 1) {
        MPI_Status s;
        MPI_Count count = 0, wrong = 0;
        int small = 0;
        MPI_Probe(0, 3, MPI_COMM_WORLD, &s);
        MPI_Get_count_c(&s, MPI_BYTE, &count);
        EXPECT_EQ(count, size);
        MPI_Recv_c(buf, size, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &s);
        MPI_Get_count_c(&s, MPI_BYTE, &count);
        EXPECT_EQ(count, size);
        MPI_Get_count(&s, MPI_BYTE, &small);
        EXPECT_EQ(small, MPI_UNDEFINED); /* the count exceeds INT_MAX */
        for (MPI_Count i = 0; i < size - 1; i += step)
            wrong += buf[i] != (unsigned char)(i / step * 31 + 5);
        EXPECT_EQ(wrong, 0);
        EXPECT_EQ(buf[size - 1], 99);
    }
    if (buf != MAP_FAILED)
        munmap(buf, (size_t)size);
    return mpitest_end();
}
