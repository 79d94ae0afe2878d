/* shared_page.h: a page of memory that all ranks of a job on one machine share, for ranks that synchronise
 * outside MPI. Include it after defining _GNU_SOURCE.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_MPI_SHARED_PAGE_H
#define FP_MPI_SHARED_PAGE_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpitest.h"

enum { SHARED_PAGE_BYTES = 4096 };

/* Maps a page filled with zeros that all ranks share; the file has no name that could remain. */
static inline void *map_shared_page(void)
{
    char path[64] = "";
    int fd = -1;
    if (mpitest_rank == 0) {
        fd = memfd_create("fishplate-test", MFD_CLOEXEC);
        EXPECT_EQ(ftruncate(fd, SHARED_PAGE_BYTES), 0);
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
    }
    MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (mpitest_rank != 0)
        fd = open(path, O_RDWR);
    MPI_Barrier(MPI_COMM_WORLD);
    void *page = mmap(NULL, SHARED_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    close(fd);
    return page;
}

#endif
