/* mappings.c: memory that the program maps itself (VMM): another allocation at the same address, buffers
 * that extend beyond the mapping, and the descriptors of messages in flight. Also messages longer than
 * their receives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "area.h"
#include "mpitest.h"
#include "program.h"

#define BYTES   1500000
#define TURNS   6
#define PENDING 300 /* messages in flight at the same time */
#define MANY    300 /* messages, one after the other */

static cuda_pointer reserve_addresses(size_t size)
{
    cuda_pointer address = 0;
    EXPECT_EQ(cu.reserve(&address, size, PROGRAM_UNIT, 0, 0), CUDA_OK);
    return address;
}

static void map_at(cuda_pointer address, size_t size)
{
    const struct cuda_vmm_location location = {.type = CUDA_LOCATION_DEVICE, .id = 0};
    const struct cuda_vmm_properties properties = {
        .type = CUDA_VMM_PINNED, .handle_types = CUDA_HANDLE_POSIX_FD, .location = location};
    const struct cuda_vmm_access access = {.location = location, .flags = CUDA_VMM_READ_WRITE};
    cuda_vmm_handle handle;
    EXPECT_EQ(cu.create(&handle, size, &properties, 0), CUDA_OK);
    EXPECT_EQ(cu.map(address, size, 0, handle, 0), CUDA_OK);
    EXPECT_EQ(cu.release_handle(handle), CUDA_OK);
    EXPECT_EQ(cu.set_access(address, size, &access, 1), CUDA_OK);
}

static void expect_pattern(const struct area *a, size_t size, unsigned seed)
{
    char *expected = malloc(size), *seen = malloc(size);
    area_pattern(expected, a->size > size ? size : a->size, seed);
    area_read(a, 0, seen, size);
    EXPECT(memcmp(expected, seen, size) == 0);
    free(expected);
    free(seen);
}

/* Before each message from rank 0 to rank 1, rank `side` maps new memory at its buffer's address. */
static void test_new_allocation_at_address(int side, enum area_kind other)
{
    const size_t size = 2 * PROGRAM_UNIT;
    const cuda_pointer address = reserve_addresses(size);
    struct area there = area_alloc(other, BYTES), mapped = {(char *)address, BYTES, AREA_VMM};
    const struct area *mine = mpitest_rank == side ? &mapped : &there;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        map_at(address, size);
        if (mpitest_rank == 0) {
            area_fill(mine, turn);
            MPI_Send(mine->at, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(mine->at, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect_pattern(mine, BYTES, turn);
        }
        cu.synchronize();
        EXPECT_EQ(cu.unmap(address, size), CUDA_OK);
    }
    EXPECT_EQ(cu.unreserve(address, size), CUDA_OK);
    area_free(&there);
}

/* The buffer of rank `side` extends beyond its last mapping. */
static void test_partly_mapped_buffer(int side)
{
    const cuda_pointer address = reserve_addresses(4 * PROGRAM_UNIT);
    const int count = (int)(3 * PROGRAM_UNIT);
    struct area whole = area_alloc(AREA_DEVICE, (size_t)count);
    char *const at = mpitest_rank == side ? (char *)address : whole.at;
    map_at(address, 2 * PROGRAM_UNIT);
    const int rc = mpitest_rank == 0 ? MPI_Send(at, count, MPI_BYTE, 1, 1, MPI_COMM_WORLD)
                                     : MPI_Recv(at, count, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(rc != MPI_SUCCESS);
    cu.synchronize();
    EXPECT_EQ(cu.unmap(address, 2 * PROGRAM_UNIT), CUDA_OK);
    EXPECT_EQ(cu.unreserve(address, 4 * PROGRAM_UNIT), CUDA_OK);
    area_free(&whole);
}

static int count_descriptors(void)
{
    DIR *all = opendir("/proc/self/fd");
    int count = 0;
    while (all && readdir(all))
        count++;
    closedir(all);
    return count;
}

static void test_descriptors_of_many_messages(enum area_kind from, enum area_kind to)
{
    struct area a = area_alloc(mpitest_rank == 0 ? from : to, BYTES / 2);
    int before = 0;
    for (int i = 0; i < MANY; i++) {
        if (i == 10)
            before = count_descriptors();
        if (mpitest_rank == 0)
            MPI_Send(a.at, BYTES / 2, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        else
            MPI_Recv(a.at, BYTES / 2, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    EXPECT(count_descriptors() <= before + 1); /* the sender's last message may be in flight */
    area_free(&a);
}

/* The program can open files while many messages wait for their receives. */
static void test_descriptors_of_pending_messages(void)
{
    MPI_Request requests[PENDING];
    struct rlimit old;
    struct area a = area_alloc(AREA_VMM, BYTES / 2);
    getrlimit(RLIMIT_NOFILE, &old);
    struct rlimit few = {(rlim_t)count_descriptors() + PENDING / 2, old.rlim_max};
    area_fill(&a, mpitest_rank == 0 ? 5 : 6);
    setrlimit(RLIMIT_NOFILE, &few);
    for (int i = 0; i < PENDING && mpitest_rank == 0; i++)
        MPI_Isend(a.at, BYTES / 2, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
    int files[20];
    for (int i = 0; i < 20; i++) {
        files[i] = open("/dev/null", O_RDONLY);
        EXPECT(files[i] >= 0);
    }
    for (int i = 0; i < 20; i++)
        close(files[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = PENDING - 1; i >= 0 && mpitest_rank == 1; i--)
        MPI_Recv(a.at, BYTES / 2, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (mpitest_rank == 0)
        MPI_Waitall(PENDING, requests, MPI_STATUSES_IGNORE);
    expect_pattern(&a, BYTES / 2, 5);
    setrlimit(RLIMIT_NOFILE, &old);
    area_free(&a);
}

/* As in host memory, a receive that is too short is filled and returns an error. */
static void test_truncated_message(enum area_kind from, enum area_kind to)
{
    struct area a = area_alloc(mpitest_rank == 0 ? from : to, mpitest_rank == 0 ? BYTES : BYTES - 400001);
    area_fill(&a, 7 + (unsigned)mpitest_rank);
    if (mpitest_rank == 0) {
        EXPECT_EQ(MPI_Send(a.at, BYTES, MPI_BYTE, 1, 3, MPI_COMM_WORLD), MPI_SUCCESS);
    } else {
        EXPECT_EQ(MPI_Recv(a.at, (int)a.size, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                  MPI_ERR_TRUNCATE);
        expect_pattern(&a, a.size, 7);
    }
    area_free(&a);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    if (!area_load_cuda()) {
        MPI_Finalize();
        return 77;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    test_new_allocation_at_address(0, AREA_DEVICE);
    test_new_allocation_at_address(1, AREA_HOST);
    test_new_allocation_at_address(1, AREA_POOL);
    test_partly_mapped_buffer(0);
    test_partly_mapped_buffer(1);
    test_descriptors_of_many_messages(AREA_VMM, AREA_DEVICE);
    test_descriptors_of_many_messages(AREA_HOST, AREA_VMM);
    test_descriptors_of_pending_messages();
    for (int from = 0; from < AREA_NAMES; from++)
        for (int to = 0; to < AREA_NAMES; to++)
            test_truncated_message((enum area_kind)from, (enum area_kind)to);
    return mpitest_end();
}
