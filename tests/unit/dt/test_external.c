/* test_external.c: the external32 representation: known bytes for known values, conversion to shorter
 * types, and unpacking.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <complex.h>
#include <stdlib.h>
#include <wchar.h>

#include "dt/build.h"
#include "dt/external.h"
#include "dt/kind.h"
#include "model.h"

static void check_bytes(MPI_Datatype handle, const void *value, const char *bytes, size_t n)
{
    struct dtype *t = dtype_from_handle(handle);
    char out[64], back[64];
    memset(out, 0x55, sizeof(out));
    memset(back, 0, sizeof(back));
    EXPECT_EQ(dt_external_size(t, 1), n);
    EXPECT_EQ(dt_external_pack(t, 1, value, out), 0);
    if (memcmp(out, bytes, n) != 0) {
        printf("%s:", t->name);
        for (size_t i = 0; i < n; i++)
            printf(" %02x", (unsigned char)out[i]);
        printf("\n");
        EXPECT(!"the bytes are as expected");
    }
    EXPECT_EQ(out[n], 0x55);
    EXPECT_EQ(dt_external_unpack(t, 1, back, out, n), t->size);
    if (handle != MPI_LONG_DOUBLE)
        EXPECT(memcmp(back, value, (size_t)t->size) == 0);
    else
        EXPECT(*(const long double *)value == *(long double *)(void *)back);
}

#define CHECK_BYTES(type, value, ...) \
    check_bytes(type, &(value), (const char[]){__VA_ARGS__}, sizeof((const char[]){__VA_ARGS__}))

static void test_known_bytes(void)
{
    int i = 0x01020304, minus = -2;
    short s = 0x0102;
    long l = -3;
    unsigned long ul = 0xfffffffeu;
    long long ll = 0x0102030405060708;
    float f = 1.5f;
    double d = -2.0;
    _Alignas(16) long double ld = 1.5L;
    float complex fc = 1.0f + 2.0f * I;
    _Bool yes = 1;
    wchar_t w = 0x263a;
    char c = 'A';
    CHECK_BYTES(MPI_INT, i, 1, 2, 3, 4);
    CHECK_BYTES(MPI_INT, minus, -1, -1, -1, -2);
    CHECK_BYTES(MPI_SHORT, s, 1, 2);
    CHECK_BYTES(MPI_LONG, l, -1, -1, -1, -3);
    CHECK_BYTES(MPI_UNSIGNED_LONG, ul, -1, -1, -1, -2);
    CHECK_BYTES(MPI_LONG_LONG, ll, 1, 2, 3, 4, 5, 6, 7, 8);
    CHECK_BYTES(MPI_INT64_T, ll, 1, 2, 3, 4, 5, 6, 7, 8);
    CHECK_BYTES(MPI_AINT, ll, 1, 2, 3, 4, 5, 6, 7, 8);
    CHECK_BYTES(MPI_FLOAT, f, 0x3f, (char)0xc0, 0, 0);
    CHECK_BYTES(MPI_DOUBLE, d, (char)0xc0, 0, 0, 0, 0, 0, 0, 0);
    CHECK_BYTES(MPI_LONG_DOUBLE, ld, 0x3f, (char)0xff, (char)0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CHECK_BYTES(MPI_C_FLOAT_COMPLEX, fc, 0x3f, (char)0x80, 0, 0, 0x40, 0, 0, 0);
    CHECK_BYTES(MPI_C_BOOL, yes, 1);
    CHECK_BYTES(MPI_WCHAR, w, 0x26, 0x3a);
    CHECK_BYTES(MPI_CHAR, c, 'A');
    CHECK_BYTES(MPI_BYTE, c, 'A');
}

static void test_overflow_is_an_error(void)
{
    long big = 1L << 40, least = -(1L << 31);
    unsigned long ubig = 1UL << 32;
    char out[16];
    EXPECT_EQ(dt_external_pack(dtype_from_handle(MPI_LONG), 1, &big, out), MPI_ERR_CONVERSION);
    EXPECT_EQ(dt_external_pack(dtype_from_handle(MPI_LONG), 1, &least, out), 0);
    EXPECT_EQ(dt_external_pack(dtype_from_handle(MPI_UNSIGNED_LONG), 1, &ubig, out), MPI_ERR_CONVERSION);
}

static void test_sizes(void)
{
    static const struct {
        MPI_Datatype type;
        int size;
    } sizes[] = {{MPI_PACKED, 1},           {MPI_WCHAR, 2},
                 {MPI_UNSIGNED_SHORT, 2},   {MPI_UNSIGNED, 4},
                 {MPI_UNSIGNED_LONG, 4},    {MPI_UNSIGNED_LONG_LONG, 8},
                 {MPI_LONG_DOUBLE, 16},     {MPI_C_LONG_DOUBLE_COMPLEX, 32},
                 {MPI_CHARACTER, 1},        {MPI_LOGICAL, 4},
                 {MPI_INTEGER, 4},          {MPI_REAL, 4},
                 {MPI_DOUBLE_PRECISION, 8}, {MPI_COMPLEX, 8},
                 {MPI_DOUBLE_COMPLEX, 16},  {MPI_COUNT, 8},
                 {MPI_OFFSET, 8},           {MPI_CXX_BOOL, 1},
                 {MPI_LONG_INT, 8},         {MPI_DOUBLE_INT, 12},
                 {MPI_LONG_DOUBLE_INT, 20}, {MPI_SHORT_INT, 6}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        EXPECT_EQ(dt_external_size(dtype_from_handle(sizes[i].type), 3), 3 * sizes[i].size);
}

/* A structure that contains a vector, packed and unpacked. */
static void test_derived_type_round_trip(void)
{
    struct item {
        double d[4];
        long l;
        short s[2];
    } in[5], back[5];
    struct dtype *v, *t, *r;
    dtype_vector(2, 1, 2, dtype_from_handle(MPI_DOUBLE), false, &v);
    int n[3] = {1, 1, 2};
    MPI_Aint at[3] = {0, offsetof(struct item, l), offsetof(struct item, s)};
    MPI_Datatype types[3] = {dtype_handle(v), MPI_LONG, MPI_SHORT};
    dtype_struct(3, ivec_from_int(n), ivec_from_int64(at), types, &t);
    dtype_resized(t, 0, sizeof(struct item), false, &r);
    EXPECT_EQ(dt_external_size(r, 5), 5 * (16 + 4 + 4));
    memset(in, 0, sizeof(in));
    memset(back, 0, sizeof(back));
    for (int i = 0; i < 5; i++)
        in[i] = (struct item){{i, 0, i + 0.5, 0}, -i, {(short)i, (short)-i}};
    char out[5 * 24];
    EXPECT_EQ(dt_external_pack(r, 5, in, out), 0);
    EXPECT_EQ((unsigned char)out[24 + 16 + 3], 0xff);
    EXPECT_EQ(dt_external_unpack(r, 5, back, out, sizeof(out)), 5 * r->size);
    for (int i = 0; i < 5; i++)
        EXPECT(back[i].d[2] == i + 0.5 && back[i].l == -i && back[i].s[1] == -i);
    /* The input ends inside the long of the second structure: memory of that long and of all later
     * elements does not change. */
    memset(back, 0x77, sizeof(back));
    EXPECT_EQ(dt_external_unpack(r, 5, back, out, 24 + 16 + 3), r->size + 16);
    EXPECT(back[0].s[1] == 0 && back[1].d[2] == 1.5);
    EXPECT(back[1].l == 0x7777777777777777 && back[1].s[0] == 0x7777 && back[4].s[1] == 0x7777);
    dtype_release(v);
    dtype_release(t);
    dtype_release(r);
}

int main(void)
{
    TEST_RUN(test_known_bytes);
    TEST_RUN(test_overflow_is_an_error);
    TEST_RUN(test_sizes);
    TEST_RUN(test_derived_type_round_trip);
    return test_result();
}
