/* overflow.c: views and accesses whose offsets exceed the largest file offset return an error and change
 * no byte of the file.
 * ranks: 1 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "iotest.h"

#define STRIDE ((MPI_Aint)1 << 40)

static char before[8], after[8];

static void expect_unchanged(const char *name)
{
    FILE *f = fopen(name, "r");
    memset(after, 0, sizeof(after));
    EXPECT(f && fread(after, 1, sizeof(after), f) == sizeof(after));
    EXPECT(memcmp(before, after, sizeof(before)) == 0);
    if (f)
        fclose(f);
}

/* Tests a view of one byte every 2^40 bytes: element 2^24 would have offset 2^64. */
static void test_strided(MPI_File f, const char *name)
{
    MPI_Datatype tile;
    MPI_Offset at = -1, disp = -1;
    char byte = 'x';
    MPI_Request request;
    MPI_Type_create_resized(MPI_BYTE, 0, STRIDE, &tile);
    MPI_Type_commit(&tile);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_BYTE, tile, "native", MPI_INFO_NULL), 0);
    for (int shift = 23; shift <= 40; shift++) {
        const MPI_Offset offset = (MPI_Offset)1 << shift;
        EXPECT_CLASS(MPI_File_write_at(f, offset, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG);
        EXPECT_CLASS(MPI_File_read_at(f, offset, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG);
        EXPECT_CLASS(MPI_File_iwrite_at(f, offset, &byte, 1, MPI_BYTE, &request), MPI_ERR_ARG);
        EXPECT_CLASS(MPI_File_get_byte_offset(f, offset, &disp), MPI_ERR_ARG);
        EXPECT_CLASS(MPI_File_write_at_all(f, offset, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    }
    /* 2^24 elements from the start end beyond offset 2^63; the first two do not. */
    EXPECT_EQ(MPI_File_get_byte_offset(f, 1, &disp), 0);
    EXPECT_EQ(disp, STRIDE);
    EXPECT_EQ(MPI_File_seek(f, (MPI_Offset)1 << 24, MPI_SEEK_SET), 0);
    EXPECT_CLASS(MPI_File_write(f, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    EXPECT_EQ(MPI_File_get_position(f, &at), 0);
    MPI_Type_free(&tile);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_unchanged(name);
}

/* Tests MPI_SEEK_END in a view whose tile has a byte at offset 0 and one near 2^63 and an extent of one byte:
 * most tiles that begin inside the file would end beyond 2^63. */
static void test_overlapping(MPI_File f, const char *name)
{
    const MPI_Aint displacements[2] = {0, (MPI_Aint)(((uint64_t)1 << 63) - 100)};
    MPI_Datatype pair, tile;
    MPI_Type_create_hindexed_block(2, 1, displacements, MPI_BYTE, &pair);
    MPI_Type_create_resized(pair, 0, 1, &tile);
    MPI_Type_commit(&tile);
    EXPECT_EQ(MPI_File_set_size(f, (MPI_Offset)1 << 42), 0);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_BYTE, tile, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_seek(f, 0, MPI_SEEK_END), 0);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_set_size(f, sizeof(before)), 0);
    MPI_Type_free(&pair);
    MPI_Type_free(&tile);
    expect_unchanged(name);
}

/* Tests a displacement and data whose end is beyond 2^63. */
static void test_displaced(MPI_File f, const char *name)
{
    const MPI_Offset last = (MPI_Offset)(((uint64_t)1 << 63) - 4);
    MPI_Offset disp;
    char bytes[8] = "abcdefg";
    EXPECT_EQ(MPI_File_set_view(f, last, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), 0);
    EXPECT_CLASS(MPI_File_write_at(f, 0, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_File_write_at(f, 8, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_File_get_byte_offset(f, 8, &disp), MPI_ERR_ARG);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_unchanged(name);
}

static void test_pointers(MPI_File f)
{
    const MPI_Offset far = (MPI_Offset)(((uint64_t)1 << 63) - 2);
    MPI_Offset at;
    char bytes[8] = "abcdefg";
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_seek(f, far, MPI_SEEK_SET), 0);
    EXPECT_CLASS(MPI_File_seek(f, 8, MPI_SEEK_CUR), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_File_write(f, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    EXPECT_EQ(MPI_File_get_position(f, &at), 0);
    EXPECT_EQ(at, far);
    EXPECT_EQ(MPI_File_seek_shared(f, far, MPI_SEEK_SET), 0);
    EXPECT_CLASS(MPI_File_write_shared(f, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_get_position_shared(f, &at), 0);
    EXPECT_EQ(at, far);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_size > 1)
        EXPECT_CLASS(MPI_File_write_ordered(f, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    const char *name = iotest_begin(&argc, &argv);
    MPI_File f;
    for (size_t i = 0; i < sizeof(before); i++)
        before[i] = (char)('0' + i);
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f), 0);
    if (mpitest_rank == 0)
        EXPECT_EQ(MPI_File_write_at(f, 0, before, sizeof(before), MPI_BYTE, MPI_STATUS_IGNORE), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    test_strided(f, name);
    test_overlapping(f, name);
    test_displaced(f, name);
    test_pointers(f);
    EXPECT_EQ(MPI_File_close(&f), 0);
    return iotest_end();
}
