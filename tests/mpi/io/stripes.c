/* stripes.c: hints and layouts of parallel file systems. This program interposes on the library's system
 * calls and simulates a Lustre file system: it reports folders as Lustre and stores the layout of one
 * file.
 * ranks: 4
 * nodes: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "iotest.h"

#define LUSTRE 0x0bd00bd0
#define GPFS   0x47504653
#define STRIPE 65536

static struct {
    long fs_type;                       /* reported type of the file system; 0: the real one */
    char layout[256];                   /* layout of the file */
    size_t layout_size;                 /* bytes of the layout; 0: the file has none */
    int setxattr_calls, setxattr_fails; /* number of setxattr calls; 1: setxattr fails */
    long block_size;                    /* reported st_blksize; 0: the real one */
} fs;

int statfs(const char *path, struct statfs *out)
{
    const int rc = (int)syscall(SYS_statfs, path, out);
    if (rc == 0 && fs.fs_type)
        out->f_type = fs.fs_type;
    return rc;
}

int fstatfs(int fd, struct statfs *out)
{
    const int rc = (int)syscall(SYS_fstatfs, fd, out);
    if (rc == 0 && fs.fs_type)
        out->f_type = fs.fs_type;
    return rc;
}

int fstat(int fd, struct stat *out)
{
    const int rc = fstatat(fd, "", out, AT_EMPTY_PATH);
    if (rc == 0 && fs.block_size)
        out->st_blksize = fs.block_size;
    return rc;
}

int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    struct stat st;
    EXPECT(strcmp(name, "lustre.lov") == 0 && size <= sizeof(fs.layout));
    EXPECT(stat(path, &st) == 0 && st.st_size == 0); /* the file exists and is empty */
    fs.setxattr_calls++;
    if (fs.setxattr_fails) {
        errno = EOPNOTSUPP;
        return -1;
    }
    memcpy(fs.layout, value, size);
    fs.layout_size = size;
    return 0;
}

ssize_t fgetxattr(int fd, const char *name, void *value, size_t size)
{
    EXPECT(strcmp(name, "lustre.lov") == 0);
    if (fs.layout_size == 0 || size < fs.layout_size) {
        errno = fs.layout_size ? ERANGE : ENODATA;
        return -1;
    }
    memcpy(value, fs.layout, fs.layout_size);
    return (ssize_t)fs.layout_size;
}

static int written[64], nwritten; /* stripes written by this rank's calls */

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    if (nwritten < 64)
        written[nwritten++] = (int)(offset / STRIPE);
    return syscall(SYS_pwrite64, fd, buf, n, offset);
}

static void store_32(size_t at, uint32_t value)
{
    memcpy(fs.layout + at, &value, sizeof(value));
}

static void store_16(size_t at, uint16_t value)
{
    memcpy(fs.layout + at, &value, sizeof(value));
}

/* Stores a layout with one component at offset `at`. */
static void store_layout(size_t at, uint32_t magic, uint32_t stripe, uint16_t count)
{
    memset(fs.layout + at, 0, 32);
    store_32(at, magic);
    store_32(at + 24, stripe);
    store_16(at + 28, count);
    fs.layout_size = at + 32;
}

static int get_hint(MPI_File f, const char *key)
{
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL + 1] = "0";
    int length = (int)sizeof(value), flag;
    MPI_File_get_info(f, &info);
    MPI_Info_get_string(info, key, &length, value, &flag);
    MPI_Info_free(&info);
    return flag ? atoi(value) : 0;
}

/* Opens a new file (`fresh`) or the existing one; only rank 0 is on a file system with layouts. */
static MPI_File open_file(int fresh, const char *factor, const char *unit)
{
    MPI_File f = MPI_FILE_NULL;
    MPI_Info info;
    MPI_Info_create(&info);
    if (factor)
        MPI_Info_set(info, "striping_factor", factor);
    if (unit)
        MPI_Info_set(info, "striping_unit", unit);
    MPI_Info_set(info, "romio_cb_write", "enable");
    if (fresh && mpitest_rank == 0)
        unlink(iotest_name);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, iotest_name,
                            MPI_MODE_RDWR | MPI_MODE_CREATE | (fresh ? MPI_MODE_EXCL : 0), info, &f),
              0);
    MPI_Info_free(&info);
    return f;
}

static void expect_stripes(MPI_File f, int factor, int unit)
{
    EXPECT_EQ(get_hint(f, "striping_factor"), factor);
    EXPECT_EQ(get_hint(f, "striping_unit"), unit);
}

static void check_create(void)
{
    fs.fs_type = mpitest_rank == 0 ? LUSTRE : 0;
    MPI_File f = open_file(1, "4", "131072");
    uint32_t magic, stripe;
    uint16_t count;
    memcpy(&magic, fs.layout, 4);
    memcpy(&stripe, fs.layout + 24, 4);
    memcpy(&count, fs.layout + 28, 2);
    if (mpitest_rank == 0) {
        EXPECT_EQ(fs.setxattr_calls, 1);
        EXPECT_EQ(magic, 0x0bd10bd0);
        EXPECT_EQ(stripe, 131072);
        EXPECT_EQ(count, 4);
    } else {
        EXPECT_EQ(fs.setxattr_calls, 0);
    }
    expect_stripes(f, 4, 131072);
    EXPECT_EQ(MPI_File_close(&f), 0);
    /* An existing file keeps its layout, whatever the hints request. */
    f = open_file(0, "2", "65536");
    EXPECT_EQ(fs.setxattr_calls, mpitest_rank == 0);
    expect_stripes(f, 4, 131072);
    EXPECT_EQ(MPI_File_close(&f), 0);
    /* With MPI_MODE_EXCL an existing file is an error. */
    EXPECT_EQ(
        get_error_class(MPI_File_open(MPI_COMM_WORLD, iotest_name,
                                      MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &f)),
        MPI_ERR_FILE_EXISTS);
}

/* Tests a file system that refuses a layout: the file gets that of the folder. */
static void check_refused_layout(void)
{
    fs.setxattr_fails = 1;
    fs.layout_size = 0;
    MPI_File f = open_file(1, "4", "131072");
    EXPECT_EQ(fs.setxattr_calls, mpitest_rank == 0 ? 2 : 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
    fs.setxattr_fails = 0;
}

/* Tests layouts of several components, and invalid values. */
static void check_layouts(void)
{
    memset(fs.layout, 0, sizeof(fs.layout));
    store_layout(32 + 2 * 48 + 32, 0x0bd30bd0, 1 << 20, 7);
    const size_t size = fs.layout_size;
    store_layout(32 + 2 * 48, 0x0bd10bd0, 65536, 1);
    fs.layout_size = size;
    store_32(0, 0x0bd60bd0);
    store_16(14, 2);
    store_32(32 + 24, 32 + 2 * 48);
    store_32(32 + 48 + 24, 32 + 2 * 48 + 32);
    MPI_File f = open_file(0, NULL, NULL);
    expect_stripes(f, 7, 1 << 20);
    EXPECT_EQ(MPI_File_close(&f), 0);
    store_32(32 + 48 + 24, 0xfffffff0); /* offset outside the layout */
    f = open_file(0, NULL, NULL);
    expect_stripes(f, 0, 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
    fs.layout_size = 5;
    f = open_file(0, NULL, NULL);
    expect_stripes(f, 0, 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
    fs.fs_type = mpitest_rank == 0 ? GPFS : 0;
    fs.block_size = 4 << 20;
    f = open_file(0, NULL, NULL);
    expect_stripes(f, 0, 4 << 20);
    EXPECT_EQ(MPI_File_close(&f), 0);
    fs.block_size = 0;
}

#define PIECE  1000
#define PIECES 500

/* Aggregators write stripes in turn, each aggregator always those of the same servers, also in an
 * operation that begins at another offset; all data arrives. */
static void check_aggregators(void)
{
    static char out[PIECE * PIECES], in[PIECE * PIECES];
    MPI_Datatype piece, type;
    fs.fs_type = mpitest_rank == 0 ? LUSTRE : 0;
    store_layout(0, 0x0bd10bd0, STRIPE, 2);
    MPI_File f = open_file(0, NULL, NULL);
    EXPECT_EQ(get_hint(f, "cb_nodes") % 2, 0);
    MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, PIECE * mpitest_size, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 2; i++) {
        const int aggregators = get_hint(f, "cb_nodes");
        memset(out, 'a' + mpitest_rank + 10 * i, sizeof(out));
        EXPECT_EQ(MPI_File_set_view(f, i * STRIPE * 3 + mpitest_rank * PIECE, MPI_BYTE, type, "native",
                                    MPI_INFO_NULL),
                  0);
        nwritten = 0;
        EXPECT_EQ(MPI_File_write_at_all(f, 0, out, sizeof(out), MPI_BYTE, MPI_STATUS_IGNORE), 0);
        for (int k = 1; k < nwritten; k++)
            EXPECT_EQ(written[k] % aggregators, written[0] % aggregators);
        EXPECT_EQ(MPI_File_read_at_all(f, 0, in, sizeof(in), MPI_BYTE, MPI_STATUS_IGNORE), 0);
        EXPECT(memcmp(out, in, sizeof(in)) == 0);
        int first = nwritten ? written[0] % aggregators : -1;
        static int was = -1;
        if (i == 1)
            EXPECT_EQ(first, was);
        was = first;
    }
    MPI_Type_free(&piece);
    MPI_Type_free(&type);
    EXPECT_EQ(MPI_File_close(&f), 0);
}

int main(int argc, char **argv)
{
    iotest_begin(&argc, &argv);
    check_create();
    check_refused_layout();
    check_layouts();
    check_aggregators();
    fs.fs_type = 0;
    return iotest_end();
}
