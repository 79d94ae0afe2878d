/* datareps.c: data representations: bytes of external32 in the file, scaled and unscaled displacements,
 * types that are narrower in the file, representations of the user, and reads across the end of the file.
 * ranks: 1 2
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>

#include "iotest.h"

static void read_raw_bytes(MPI_File f, MPI_Offset at, unsigned char *bytes, int n)
{
    MPI_Status status;
    memset(bytes, 0xee, (size_t)n);
    MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    EXPECT_EQ(MPI_File_read_at(f, at, bytes, n, MPI_BYTE, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_BYTE), n);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void check_external(MPI_File f)
{
    unsigned char bytes[16];
    int out[2] = {0x01020304, -2}, in[4] = {0, 0, 0, 0};
    long wide[2] = {0x01020304, -5}, back[2] = {0, 0};
    MPI_Aint extent = 0;
    MPI_Status status;
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_write_at_all(f, 0, out, 2, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), 2);
    EXPECT_EQ(MPI_File_get_type_extent(f, MPI_LONG, &extent), 0);
    EXPECT_EQ(extent, 4);
    EXPECT_EQ(MPI_File_read_at_all(f, 0, in, 4, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), 2);
    EXPECT(in[0] == out[0] && in[1] == -2 && in[2] == 0);
    read_raw_bytes(f, 0, bytes, 8);
    EXPECT(memcmp(bytes, "\1\2\3\4\377\377\377\376", 8) == 0);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_write_at_all(f, 1, wide, 2, MPI_LONG, &status), 0);
    EXPECT_EQ(MPI_File_read_at_all(f, 1, back, 2, MPI_LONG, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_LONG), 2);
    EXPECT(back[0] == wide[0] && back[1] == -5);
    read_raw_bytes(f, 4, bytes, 8);
    EXPECT(memcmp(bytes, "\1\2\3\4\377\377\377\373", 8) == 0);
}

/* Interleaves longs of the ranks: a vector's stride is scaled to the four bytes that a long has in the
 * file. */
static void check_scaled(MPI_File f)
{
    MPI_Datatype mine;
    long out[6], in[6];
    int starts[1] = {mpitest_rank}, sizes[1] = {mpitest_size}, sub[1] = {1};
    unsigned char bytes[8];
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_size(f, 0);
    MPI_Type_create_subarray(1, sizes, sub, starts, MPI_ORDER_C, MPI_LONG, &mine);
    MPI_Type_commit(&mine);
    for (int i = 0; i < 6; i++)
        out[i] = 1000 * mpitest_rank + i;
    EXPECT_EQ(MPI_File_set_view(f, 8, MPI_LONG, mine, "external32", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_write_all(f, out, 6, MPI_LONG, MPI_STATUS_IGNORE), 0);
    MPI_File_seek(f, 0, MPI_SEEK_SET);
    EXPECT_EQ(MPI_File_read_all(f, in, 6, MPI_LONG, MPI_STATUS_IGNORE), 0);
    EXPECT(memcmp(in, out, sizeof(in)) == 0);
    MPI_Offset size;
    MPI_File_get_size(f, &size);
    EXPECT_EQ(size, 8 + 24 * mpitest_size);
    read_raw_bytes(f, 8 + 4 * (5 * mpitest_size + mpitest_rank), bytes, 4);
    EXPECT_EQ(bytes[2] << 8 | bytes[3], 1000 * mpitest_rank + 5);
    MPI_Type_free(&mine);
}

/* A user's representation with integers of eight bytes, each with the extra state added. */
static int extent_fn(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    (void)extra;
    *extent = type == MPI_INT ? 8 : 1;
    return MPI_SUCCESS;
}

static int write_fn(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra)
{
    (void)type;
    for (int i = 0; i < count; i++) {
        const int64_t wide = ((int *)user)[position + i] + *(int *)extra;
        memcpy((char *)file + 8 * i, &wide, 8);
    }
    return MPI_SUCCESS;
}

static int read_fn(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra)
{
    (void)type;
    for (int i = 0; i < count; i++) {
        int64_t wide;
        memcpy(&wide, (char *)file + 8 * i, 8);
        ((int *)user)[position + i] = (int)(wide - *(int *)extra);
    }
    return MPI_SUCCESS;
}

/* Conversion functions of the large-count form. */
static int write_c_fn(void *user, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position,
                      void *extra)
{
    return write_fn(user, type, (int)count, file, position, extra);
}

static int read_c_fn(void *user, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position,
                     void *extra)
{
    return read_fn(user, type, (int)count, file, position, extra);
}

static int failing_fn(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra)
{
    (void)user, (void)type, (void)count, (void)file, (void)position, (void)extra;
    return 17;
}

static void check_user_representation(MPI_File f)
{
    static int extra = 40;
    int out[3] = {1, 2, 3}, in[5] = {0, 0, 0, 0, 0};
    unsigned char bytes[24];
    MPI_Status status;
    EXPECT_EQ(MPI_Register_datarep("wide", read_fn, write_fn, extent_fn, &extra), 0);
    EXPECT_CLASS(MPI_Register_datarep("wide", read_fn, write_fn, extent_fn, &extra), MPI_ERR_DUP_DATAREP);
    EXPECT_CLASS(MPI_Register_datarep("native", read_fn, write_fn, extent_fn, &extra), MPI_ERR_DUP_DATAREP);
    EXPECT_EQ(MPI_Register_datarep("bad", failing_fn, failing_fn, extent_fn, NULL), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_size(f, 0);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "wide", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_write_at_all(f, 0, out, 3, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), 3);
    EXPECT_EQ(MPI_File_read_at_all(f, 0, in, 5, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), 3);
    EXPECT(in[0] == 1 && in[2] == 3 && in[3] == 0);
    read_raw_bytes(f, 0, bytes, 24);
    int64_t wide;
    memcpy(&wide, bytes + 16, 8);
    EXPECT_EQ(wide, 43);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "bad", MPI_INFO_NULL), 0);
    EXPECT_CLASS(MPI_File_write_at(f, 0, out, 3, MPI_INT, &status), MPI_ERR_CONVERSION);
    EXPECT_CLASS(MPI_File_write_at_all(f, 0, out, 3, MPI_INT, &status), MPI_ERR_CONVERSION);
    EXPECT_CLASS(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "nobody's", MPI_INFO_NULL),
                 MPI_ERR_UNSUPPORTED_DATAREP);
}

static void check_user_large(MPI_File f)
{
    static int extra = 60;
    int out[3] = {7, 8, 9}, in[4] = {0, 0, 0, 0};
    unsigned char bytes[24];
    int64_t wide;
    MPI_Status status;
    EXPECT_EQ(MPI_Register_datarep_c("wide, large", read_c_fn, write_c_fn, extent_fn, &extra), 0);
    EXPECT_CLASS(MPI_Register_datarep_c("wide, large", read_c_fn, write_c_fn, extent_fn, &extra),
                 MPI_ERR_DUP_DATAREP);
    EXPECT_CLASS(MPI_Register_datarep_c("wide", read_c_fn, write_c_fn, extent_fn, &extra),
                 MPI_ERR_DUP_DATAREP);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_size(f, 0);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "wide, large", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_write_at_all_c(f, 0, out, 3, MPI_INT, &status), 0);
    EXPECT_EQ(MPI_File_read_at_all_c(f, 0, in, 4, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), 3);
    EXPECT(in[0] == 7 && in[2] == 9 && in[3] == 0);
    read_raw_bytes(f, 0, bytes, 24);
    memcpy(&wide, bytes + 16, 8);
    EXPECT_EQ(wide, 69);
}

/* Conversion functions count items of predefined types, not elements of the datatype; a read that ends
 * within an element converts the items before the end. */
static void check_user_items(MPI_File f)
{
    MPI_Datatype three;
    int out[6] = {1, 2, 3, 4, 5, 6}, in[6] = {0, 0, 0, 0, 0, 0}, items = 0;
    MPI_Status status;
    MPI_Type_contiguous(3, MPI_INT, &three);
    MPI_Type_commit(&three);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_size(f, 0);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "wide", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_write_at_all(f, 0, out, 2, three, &status), 0);
    EXPECT_EQ(get_count(&status, three), 2);
    MPI_File_set_size(f, 5 * 8 + 3);
    EXPECT_EQ(MPI_File_read_at_all(f, 0, in, 2, three, &status), 0);
    MPI_Get_elements(&status, three, &items);
    EXPECT_EQ(items, 5);
    EXPECT(memcmp(in, out, 5 * sizeof(int)) == 0 && in[5] == 0);
    MPI_Type_free(&three);
}

static int extent_native_fn(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    MPI_Aint lb;
    (void)extra;
    return MPI_Type_get_extent(type, &lb, extent);
}

static int extent_none_fn(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    (void)type, (void)extra;
    *extent = 0;
    return MPI_SUCCESS;
}

static int extent_huge_fn(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    (void)type, (void)extra;
    *extent = (MPI_Aint)1 << 61;
    return MPI_SUCCESS;
}

/* Four integers of 2^61 bytes each have 2^63 bytes: no size that a count can have. */
static void check_user_extent_overflow(MPI_File f)
{
    int buf[8] = {0};
    MPI_Datatype four;
    EXPECT_EQ(MPI_Register_datarep("huge", read_fn, write_fn, extent_huge_fn, NULL), 0);
    MPI_Type_contiguous(4, MPI_INT, &four);
    MPI_Type_commit(&four);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "huge", MPI_INFO_NULL), 0);
    EXPECT_CLASS(MPI_File_write_at(f, 0, buf, 1, four, MPI_STATUS_IGNORE), MPI_ERR_CONVERSION);
    EXPECT_CLASS(MPI_File_write_at(f, 0, buf, 2, four, MPI_STATUS_IGNORE), MPI_ERR_CONVERSION);
    MPI_Type_free(&four);
}

/* A read that ends inside a structure in external32 does not change memory after the last complete
 * element. */
static void check_external_end(MPI_File f)
{
    struct item {
        int i;
        long l;
    } out = {1, 2}, in[2] = {{-1, -1}, {-1, -1}};
    const int lengths[2] = {1, 1};
    const MPI_Aint displacements[2] = {offsetof(struct item, i), offsetof(struct item, l)};
    const MPI_Datatype types[2] = {MPI_INT, MPI_LONG};
    MPI_Datatype type;
    MPI_Status status;
    MPI_Type_create_struct(2, lengths, displacements, types, &type);
    MPI_Type_commit(&type);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_size(f, 0);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_write_at_all(f, 0, &out, 1, type, &status), 0);
    EXPECT_EQ(MPI_File_write_at_all(f, 8, &out, 1, MPI_INT, &status), 0);
    EXPECT_EQ(MPI_File_read_at_all(f, 0, in, 2, type, &status), 0);
    EXPECT(in[0].i == 1 && in[0].l == 2 && in[1].i == 1 && in[1].l == -1);
    int elements = 0;
    MPI_Get_elements(&status, type, &elements);
    EXPECT_EQ(elements, 3);
    MPI_Type_free(&type);
}

/* Without conversion functions data is stored as in memory; invalid sizes are errors. */
static void check_user_without_conversion(MPI_File f)
{
    int out[3] = {5, 6, 7}, in[3] = {0, 0, 0};
    MPI_Status status;
    EXPECT_EQ(
        MPI_Register_datarep("plain", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_native_fn, NULL),
        0);
    EXPECT_EQ(MPI_Register_datarep("odd", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_fn, NULL),
              0);
    EXPECT_EQ(
        MPI_Register_datarep("none", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_none_fn, NULL),
        0);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "plain", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_write_at_all(f, 0, out, 3, MPI_INT, &status), 0);
    EXPECT_EQ(MPI_File_read_at_all(f, 0, in, 3, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), 3);
    EXPECT(memcmp(in, out, sizeof(in)) == 0);
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "odd", MPI_INFO_NULL), 0);
    EXPECT_CLASS(MPI_File_write_at(f, 0, out, 3, MPI_INT, &status), MPI_ERR_CONVERSION);
    EXPECT_CLASS(MPI_File_read_at_all(f, 0, in, 1, MPI_INT, &status), MPI_ERR_CONVERSION);
    EXPECT_CLASS(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "none", MPI_INFO_NULL), MPI_ERR_CONVERSION);
}

static void check_views(MPI_File f)
{
    MPI_Datatype type, got_e, got_f;
    MPI_Offset disp;
    char rep[MPI_MAX_DATAREP_STRING];
    int lengths[2] = {1, 1}, displs[2] = {2, 0}, combiner = 0, n[3];
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "internal", MPI_INFO_NULL), 0);
    MPI_Type_contiguous(3, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    EXPECT_CLASS(MPI_File_set_view(f, 0, MPI_INT, type, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_File_set_view(f, 5, MPI_BYTE, type, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_get_view(f, &disp, &got_e, &got_f, rep), 0);
    EXPECT_EQ(disp, 5);
    MPI_Type_get_envelope(got_f, &n[0], &n[1], &n[2], &combiner);
    EXPECT_EQ(combiner, MPI_COMBINER_CONTIGUOUS);
    EXPECT(got_e == MPI_BYTE);
    MPI_Type_free(&got_f);
    MPI_Type_free(&type);
    MPI_Type_indexed(2, lengths, displs, MPI_INT, &type); /* decreasing displacements */
    MPI_Type_commit(&type);
    const int code = MPI_File_set_view(f, 0, MPI_INT, type, "native", MPI_INFO_NULL);
    char text[MPI_MAX_ERROR_STRING];
    EXPECT_CLASS(code, MPI_ERR_IO);
    MPI_Error_string(code, text, &n[0]);
    EXPECT(strstr(text, iotest_name) != NULL); /* the message names the file */
    EXPECT_CLASS(MPI_File_set_view(f, -7, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    iotest_begin(&argc, &argv);
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    check_external(f);
    check_scaled(f);
    check_user_representation(f);
    check_user_items(f);
    check_user_without_conversion(f);
    check_user_extent_overflow(f);
    check_external_end(f);
    check_user_large(f);
    check_views(f);
    MPI_File_close(&f);
    return iotest_end();
}
