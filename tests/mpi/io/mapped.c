/* mapped.c: small pieces with small holes are written through a mapping of the file: few system calls,
 * unchanged holes, and if pages cannot be mapped, system calls write the same bytes. The file is in
 * /dev/shm, a tmpfs, if that exists.
 * ranks: 3
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "iotest.h"

#define TMPFS 0x01021994
#define WORDS 60000
#define PIECE 50 /* words */

static int calls, refuse, refused;

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    calls++;
    return syscall(SYS_pwrite64, fd, buf, n, offset);
}

int madvise(void *at, size_t length, int advice)
{
    if (refuse) {
        refused++;
        errno = EFAULT; /* the kernel's error for a page whose access would raise SIGBUS */
        return -1;
    }
    return (int)syscall(SYS_madvise, at, length, advice);
}

static int words[WORDS], back[WORDS];

/* Opens a file with a view of interleaved ranks; the pieces of one more, absent rank are holes. */
static MPI_File open_file(const char *map)
{
    MPI_Datatype piece, type;
    MPI_Info info;
    const MPI_Aint bytes = PIECE * (MPI_Aint)sizeof(int);
    MPI_Info_create(&info);
    MPI_Info_set(info, "fishplate_map", map);
    MPI_File f = iotest_open(MPI_COMM_WORLD, info);
    MPI_Type_contiguous(PIECE, MPI_INT, &piece);
    MPI_Type_create_resized(piece, 0, bytes * (mpitest_size + 1), &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(MPI_File_set_view(f, bytes * mpitest_rank, MPI_INT, type, "native", MPI_INFO_NULL), 0);
    MPI_Type_free(&piece);
    MPI_Type_free(&type);
    MPI_Info_free(&info);
    return f;
}

/* The holes contain 0x7a bytes before the write and must contain them afterwards. */
static void check_holes(const char *name)
{
    static int all[(WORDS + PIECE) * 4];
    FILE *file = fopen(name, "rb");
    const size_t turn = (size_t)PIECE * (size_t)(mpitest_size + 1);
    const size_t n = fread(all, sizeof(int), sizeof(all) / sizeof(int), file);
    fclose(file);
    for (size_t i = 0; i < n; i++)
        if (i % turn >= (size_t)PIECE * (size_t)mpitest_size && all[i] != 0x7a7a7a7a) {
            EXPECT_EQ(all[i], 0x7a7a7a7a);
            return;
        }
}

static void prefill_file(const char *name)
{
    static char all[WORDS * sizeof(int) * 4];
    FILE *file = fopen(name, "wb");
    memset(all, 0x7a, sizeof(all));
    EXPECT_EQ(fwrite(all, 1, sizeof(all), file), sizeof(all));
    fclose(file);
}

static void check_writes(const char *name, const char *map, int expect_mapped, int seed)
{
    struct stat before, after;
    MPI_Status status;
    if (mpitest_rank == 0)
        prefill_file(name);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File f = open_file(map);
    for (int i = 0; i < WORDS; i++)
        words[i] = seed + mpitest_rank * WORDS + i;
    stat(name, &before);
    MPI_Barrier(MPI_COMM_WORLD);
    calls = refused = 0;
    EXPECT_EQ(MPI_File_write_at(f, 0, words, WORDS, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), WORDS);
    if (expect_mapped)
        EXPECT(calls < WORDS / PIECE / 10);
    else
        EXPECT(calls >= WORDS / PIECE);
    MPI_Barrier(MPI_COMM_WORLD);
    stat(name, &after);
    EXPECT(before.st_mtim.tv_sec != after.st_mtim.tv_sec || before.st_mtim.tv_nsec != after.st_mtim.tv_nsec);
    memset(back, 0, sizeof(back));
    EXPECT_EQ(MPI_File_read_at(f, 0, back, WORDS, MPI_INT, &status), 0);
    EXPECT(memcmp(words, back, sizeof(words)) == 0);
    check_holes(name);
    EXPECT_EQ(MPI_File_close(&f), 0);
}

/* A new file grows, and data from memory with gaps is packed during the write. */
static void check_growth(const char *name)
{
    MPI_Datatype every_other;
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 0)
        unlink(name);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File f = open_file("automatic");
    MPI_Type_vector(WORDS / 2, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    EXPECT_EQ(MPI_File_write_at(f, 0, words, 1, every_other, MPI_STATUS_IGNORE), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(back, 0, sizeof(back));
    EXPECT_EQ(MPI_File_read_at(f, 0, back, 1, every_other, MPI_STATUS_IGNORE), 0);
    for (int i = 0; i < WORDS; i++)
        if (back[i] != (i % 2 ? 0 : words[i])) {
            EXPECT_EQ(back[i], words[i]);
            break;
        }
    MPI_Type_free(&every_other);
    EXPECT_EQ(MPI_File_close(&f), 0);
}

int main(int argc, char **argv)
{
    char name[sizeof(iotest_name) + 16];
    struct statfs fs;
    snprintf(name, sizeof(name), "/dev/shm/%s", iotest_begin(&argc, &argv));
    const int there = statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS && access("/dev/shm", W_OK) == 0;
    if (there)
        memcpy(iotest_name, name, sizeof(iotest_name)); /* the string fits into iotest_name */
    check_writes(iotest_name, "automatic", there, 1);
    check_writes(iotest_name, "disable", 0, 2);
    refuse = 1;
    check_writes(iotest_name, "automatic", 0, 3);
    EXPECT(!there || refused > 0);
    refuse = 0;
    check_growth(iotest_name);
    return iotest_end();
}
