/* large_counts.c: more than 2^31 bytes in one call, offsets beyond 4 GiB, and sparse files. This program
 * interposes on the library's system calls: for large accesses it checks addresses and offsets and
 * transfers nothing, so that neither memory nor disk is used. With IOTEST_HUGE=1 it also writes 2 GiB
 * through aggregators to a real file.
 * ranks: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "iotest.h"

#define GIB        ((MPI_Count)1 << 30)
#define MANY_BYTES (2 * GIB + 5)

/* The simulated transfer: byte b of the file corresponds to base + b - start or, with holes, one GiB of
 * data is followed by one GiB of hole. `period`: bytes of memory that the datatype uses repeatedly; 0: each
 * byte once. `requested`: bytes requested so far. */
static struct {
    bool enabled;
    char *base;
    MPI_Count start, requested, period;
    bool holes;
} simulation;

static ssize_t check_request(void *buf, size_t n, off_t offset)
{
    MPI_Count at = offset - simulation.start;
    if (simulation.holes) {
        EXPECT(at / GIB % 2 == 0 && (at + (MPI_Count)n - 1) / GIB == at / GIB);
        at = at / GIB / 2 * GIB + at % GIB;
    }
    EXPECT_EQ(at, simulation.requested);
    EXPECT((char *)buf == simulation.base + (simulation.period ? at % simulation.period : at));
    simulation.requested += (MPI_Count)n;
    return (ssize_t)n;
}

static ssize_t check_list(const struct iovec *list, int n, off_t offset)
{
    ssize_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += check_request(list[i].iov_base, list[i].iov_len, offset + sum);
    return sum;
}

/* True for files of the test, but not for the side file of the shared pointer between nodes. */
static bool is_simulated(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    return simulation.enabled && !strstr(path, ".shared-");
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    return is_simulated(fd) ? check_request((void *)(uintptr_t)buf, n, offset)
                            : syscall(SYS_pwrite64, fd, buf, n, offset);
}

ssize_t pread(int fd, void *buf, size_t n, off_t offset)
{
    return is_simulated(fd) ? check_request(buf, n, offset) : syscall(SYS_pread64, fd, buf, n, offset);
}

ssize_t pwritev(int fd, const struct iovec *list, int n, off_t offset)
{
    return simulation.enabled ? check_list(list, n, offset)
                              : syscall(SYS_pwritev, fd, list, n, (long)offset, 0L);
}

ssize_t preadv(int fd, const struct iovec *list, int n, off_t offset)
{
    return simulation.enabled ? check_list(list, n, offset)
                              : syscall(SYS_preadv, fd, list, n, (long)offset, 0L);
}

static void begin_simulation(char *base, MPI_Count start)
{
    simulation.enabled = true;
    simulation.base = base;
    simulation.start = start;
    simulation.requested = simulation.period = 0;
    simulation.holes = false;
}

static void expect_bytes_transferred(MPI_Status *status, MPI_Count bytes)
{
    MPI_Count n = -1;
    int small = 0;
    simulation.enabled = false;
    EXPECT_EQ(simulation.requested, bytes);
    EXPECT_EQ(MPI_Get_count_c(status, MPI_BYTE, &n), 0);
    EXPECT_EQ(n, bytes);
    EXPECT_EQ(MPI_Get_elements_c(status, MPI_BYTE, &n), 0);
    EXPECT_EQ(n, bytes);
    EXPECT_EQ(MPI_Get_count(status, MPI_BYTE, &small), 0);
    EXPECT_EQ(small, MPI_UNDEFINED);
}

/* Tests large counts of bytes, with each kind of position. */
static void check_counts(MPI_File f, char *memory)
{
    MPI_Status status;
    MPI_Request request;
    MPI_Offset position;
    const MPI_Offset at = 3 + mpitest_rank * 2 * MANY_BYTES;
    begin_simulation(memory, at);
    EXPECT_EQ(MPI_File_write_at_c(f, at, memory, MANY_BYTES, MPI_BYTE, &status), 0);
    expect_bytes_transferred(&status, MANY_BYTES);
    begin_simulation(memory, at);
    EXPECT_EQ(MPI_File_read_at_c(f, at, memory, MANY_BYTES, MPI_BYTE, &status), 0);
    expect_bytes_transferred(&status, MANY_BYTES);
    begin_simulation(memory, at);
    EXPECT_EQ(MPI_File_iread_at_c(f, at, memory, MANY_BYTES, MPI_BYTE, &request), 0);
    EXPECT_EQ(MPI_Wait(&request, &status), 0);
    expect_bytes_transferred(&status, MANY_BYTES);
    begin_simulation(memory, at);
    EXPECT_EQ(MPI_File_write_at_all_c(f, at, memory, MANY_BYTES, MPI_BYTE, &status), 0);
    expect_bytes_transferred(&status, MANY_BYTES);
    begin_simulation(memory, at);
    EXPECT_EQ(MPI_File_seek(f, at, MPI_SEEK_SET), 0);
    EXPECT_EQ(MPI_File_iwrite_all_c(f, memory, MANY_BYTES, MPI_BYTE, &request), 0);
    EXPECT_EQ(MPI_Wait(&request, &status), 0);
    expect_bytes_transferred(&status, MANY_BYTES);
    EXPECT_EQ(MPI_File_get_position(f, &position), 0);
    EXPECT_EQ(position, at + MANY_BYTES);
    EXPECT_EQ(MPI_File_seek_shared(f, 7, MPI_SEEK_SET), 0);
    if (mpitest_rank == 0) {
        begin_simulation(memory, 7);
        EXPECT_EQ(MPI_File_write_shared_c(f, memory, MANY_BYTES, MPI_BYTE, &status), 0);
        expect_bytes_transferred(&status, MANY_BYTES);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_get_position_shared(f, &position), 0);
    EXPECT_EQ(position, 7 + MANY_BYTES);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
    begin_simulation(memory, 0); /* 2^62 words correspond to byte 2^64, which must not wrap to byte 0 */
    EXPECT_CLASS(MPI_File_write_at(f, (MPI_Offset)1 << 62, memory, 1, MPI_INT, &status), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_File_write_at_all(f, (MPI_Offset)1 << 62, memory, 1, MPI_INT, &status), MPI_ERR_ARG);
    simulation.enabled = false;
    EXPECT_EQ(simulation.requested, 0);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Tests a small count of a large datatype: contiguous, and the same MiB of memory repeatedly. */
static void check_types(MPI_File f, char *memory)
{
    enum { MIB = 1 << 20, TIMES = 2100 };
    MPI_Status status;
    MPI_Datatype mib, again;
    int n;
    MPI_Type_contiguous(MIB, MPI_BYTE, &mib);
    MPI_Type_commit(&mib);
    MPI_Type_create_resized(mib, 0, 0, &again);
    MPI_Type_commit(&again);
    begin_simulation(memory, 11);
    EXPECT_EQ(MPI_File_write_at(f, 11, memory, TIMES, mib, &status), 0);
    EXPECT_EQ(MPI_Get_count(&status, mib, &n), 0);
    EXPECT_EQ(n, TIMES);
    expect_bytes_transferred(&status, (MPI_Count)TIMES * MIB);
    begin_simulation(memory, 11);
    simulation.period = MIB;
    EXPECT_EQ(MPI_File_write_at(f, 11, memory, TIMES, again, &status), 0);
    expect_bytes_transferred(&status, (MPI_Count)TIMES * MIB);
    MPI_Type_free(&again);
    MPI_Type_free(&mib);
}

/* Tests a view of pieces of 1 GiB; then 40 bytes at offsets up to 2^42 that are written to the file. */
static void check_views(MPI_File f, char *memory)
{
    MPI_Status status;
    MPI_Datatype piece, type;
    MPI_Offset at;
    char some[40], back[48];
    MPI_Type_contiguous_c(GIB, MPI_BYTE, &piece);
    MPI_Type_create_resized_c(piece, 0, 2 * GIB, &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(MPI_File_set_view(f, 5 * GIB, MPI_BYTE, type, "native", MPI_INFO_NULL), 0);
    begin_simulation(memory, 5 * GIB);
    simulation.holes = true;
    EXPECT_EQ(MPI_File_write_at_c(f, 0, memory, MANY_BYTES, MPI_BYTE, &status), 0);
    expect_bytes_transferred(&status, MANY_BYTES);
    begin_simulation(memory, 5 * GIB);
    simulation.holes = true;
    EXPECT_EQ(MPI_File_read_at_c(f, 0, memory, MANY_BYTES, MPI_BYTE, &status), 0);
    expect_bytes_transferred(&status, MANY_BYTES);
    EXPECT_EQ(MPI_File_get_byte_offset(f, 2047 * GIB + 9, &at), 0);
    EXPECT_EQ(at, 5 * GIB + 2047 * 2 * GIB + 9);
    MPI_Type_free(&piece);
    MPI_Type_free(&type);
    MPI_Type_contiguous(8, MPI_BYTE, &piece);
    MPI_Type_create_resized_c(piece, 0, (MPI_Count)1 << 39, &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(MPI_File_set_view(f, 8 * mpitest_rank, MPI_BYTE, type, "native", MPI_INFO_NULL), 0);
    memset(some, 'a' + mpitest_rank, sizeof(some));
    EXPECT_EQ(MPI_File_write_at_all(f, 0, some, sizeof(some), MPI_BYTE, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_BYTE), (int)sizeof(some));
    EXPECT_EQ(MPI_File_get_size(f, &at), 0);
    EXPECT_EQ(at, ((MPI_Offset)1 << 41) + 8 * mpitest_size);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_read_at_all(f, 0, back, sizeof(back), MPI_BYTE, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_BYTE), (int)sizeof(some)); /* the file ends after these bytes */
    EXPECT(memcmp(some, back, sizeof(some)) == 0);
    EXPECT_EQ(MPI_File_seek(f, 0, MPI_SEEK_END), 0);
    EXPECT_EQ(MPI_File_get_position(f, &at), 0);
    EXPECT_EQ(at, (MPI_Offset)sizeof(some));
    MPI_Type_free(&piece);
    MPI_Type_free(&type);
}

/* Tests interleaved pieces of 8 KiB, 1 GiB and a bit of each rank, through aggregators. */
static void check_huge_collective_write(MPI_File f, char *memory)
{
    const MPI_Count each = GIB + (64 << 10);
    MPI_Datatype piece, type;
    MPI_Status status;
    MPI_Count n;
    MPI_Type_contiguous(8192, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, 8192 * mpitest_size, &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(MPI_File_set_view(f, 8192 * mpitest_rank, MPI_BYTE, type, "native", MPI_INFO_NULL), 0);
    for (MPI_Count i = 0; i < each; i += 4096)
        memory[i] = (char)(i >> 12 ^ i >> 20 ^ mpitest_rank);
    EXPECT_EQ(MPI_File_write_at_all_c(f, 0, memory, each, MPI_BYTE, &status), 0);
    MPI_Get_count_c(&status, MPI_BYTE, &n);
    EXPECT_EQ(n, each);
    memset(memory, 0, (size_t)each);
    EXPECT_EQ(MPI_File_read_at_all_c(f, 0, memory, each, MPI_BYTE, &status), 0);
    MPI_Get_count_c(&status, MPI_BYTE, &n);
    EXPECT_EQ(n, each);
    for (MPI_Count i = 0; i < each; i += 4096)
        if (memory[i] != (char)(i >> 12 ^ i >> 20 ^ mpitest_rank)) {
            EXPECT_EQ(memory[i], (char)(i >> 12 ^ i >> 20 ^ mpitest_rank));
            break;
        }
    MPI_Type_free(&piece);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    MPI_Info info;
    iotest_begin(&argc, &argv);
    char *memory = mmap(NULL, (size_t)MANY_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT(memory != MAP_FAILED);
    MPI_Info_create(&info);
    MPI_Info_set(info, "fishplate_map", "disable");
    MPI_File f = iotest_open(MPI_COMM_WORLD, info);
    check_counts(f, memory);
    check_types(f, memory);
    check_views(f, memory);
    EXPECT_EQ(MPI_File_set_size(f, 0), 0);
    if (getenv("IOTEST_HUGE"))
        check_huge_collective_write(f, memory);
    EXPECT_EQ(MPI_File_close(&f), 0);
    MPI_Info_free(&info);
    munmap(memory, (size_t)MANY_BYTES);
    return iotest_end();
}
