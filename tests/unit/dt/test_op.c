/* test_op.c: every predefined operator with every predefined type: defined if the standard requires it,
 * and equal to a scalar computation for odd counts and unaligned buffers. Also user operators and invalid
 * combinations.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>

#include "dt/build.h"
#include "dt/kind.h"
#include "dt/number.h"
#include "dt/op.h"
#include "model.h"

enum { SUM = 0x21, MIN_ = 0x22, MAX_ = 0x23, PROD = 0x24, BAND = 0x28, BOR, BXOR, LAND = 0x30, LOR, LXOR };
enum { MINLOC = 0x38, MAXLOC, REPLACE = 0x3c, NO_OP };

static const uint32_t all_ops[] = {SUM,  MIN_, MAX_, PROD,   BAND,   BOR,     BXOR,
                                   LAND, LOR,  LXOR, MINLOC, MAXLOC, REPLACE, NO_OP};

/* True if the list of type names, separated by spaces, contains the name. */
static bool list_contains(const char *list, const char *name)
{
    char padded[80];
    snprintf(padded, sizeof(padded), " %s ", name + 4);
    return strstr(list, padded) != NULL;
}

static const char c_integer[] =
    " INT LONG SHORT UNSIGNED_SHORT UNSIGNED UNSIGNED_LONG LONG_LONG_INT UNSIGNED_LONG_LONG "
    "SIGNED_CHAR UNSIGNED_CHAR INT8_T INT16_T INT32_T INT64_T UINT8_T UINT16_T UINT32_T "
    "UINT64_T CHAR "; /* the standard does not require CHAR */
static const char fortran_integer[] = " INTEGER INTEGER1 INTEGER2 INTEGER4 INTEGER8 INTEGER16 ";
static const char floating[] = " FLOAT DOUBLE REAL DOUBLE_PRECISION LONG_DOUBLE REAL2 REAL4 REAL8 REAL16 ";
static const char logical[] = " LOGICAL C_BOOL CXX_BOOL LOGICAL1 LOGICAL2 LOGICAL4 LOGICAL8 LOGICAL16 ";
static const char complex_types[] =
    " COMPLEX C_COMPLEX C_DOUBLE_COMPLEX C_LONG_DOUBLE_COMPLEX CXX_FLOAT_COMPLEX "
    "CXX_DOUBLE_COMPLEX CXX_LONG_DOUBLE_COMPLEX DOUBLE_COMPLEX COMPLEX4 COMPLEX8 "
    "COMPLEX16 COMPLEX32 ";
static const char multi[] = " AINT COUNT OFFSET ";
static const char pairs[] =
    " FLOAT_INT DOUBLE_INT LONG_INT 2INT SHORT_INT LONG_DOUBLE_INT 2REAL 2DOUBLE_PRECISION "
    "2INTEGER ";

static bool is_defined(uint32_t op, const char *t)
{
    if (!NUM_HAVE_F16 && list_contains(" REAL2 COMPLEX4 ", t))
        return false; /* the compiler has no arithmetic for this type */
    bool c = list_contains(c_integer, t),
         integer = c || list_contains(fortran_integer, t) || list_contains(multi, t);
    switch (op) {
    case SUM:
    case PROD:
        return integer || list_contains(floating, t) || list_contains(complex_types, t);
    case MIN_:
    case MAX_:
        return integer || list_contains(floating, t);
    case LAND:
    case LOR:
    case LXOR:
        /* The library also defines types that the standard does not require. */
        return integer || list_contains(logical, t) || list_contains(floating, t);
    case BAND:
    case BOR:
    case BXOR:
        return integer || list_contains(" BYTE ", t);
    case MINLOC:
    case MAXLOC:
        return list_contains(pairs, t);
    }
    return false;
}

static void test_operators_are_defined(void)
{
    for (size_t i = 0; i < COUNT_OF(all_ops); i++) {
        struct op *op = op_predefined(all_ops[i]);
        EXPECT(op && op->commutative == (all_ops[i] < REPLACE) &&
               op_handle(op) == (MPI_Op)(uintptr_t)all_ops[i]);
        for (int kind = KIND_MIXED + 1; kind < KIND_LIMIT; kind++) {
            struct dtype *t = dt_predefined(dt_kinds[kind].handle);
            int want = is_defined(all_ops[i], dt_kinds[kind].name) ? 0 : MPI_ERR_OP;
            if (op_check(op, t) != want) {
                printf("operator %#x on %s: %s\n", all_ops[i], t->name, err_detail(MPI_ERR_OP));
                EXPECT_EQ(op_check(op, t), want);
            }
        }
    }
}

/* Cases that compute one element in C without vectorisation. */
#define SCALAR_INTEGER(num, type, utype)               \
    case num: {                                        \
        type a, b, r = 0;                              \
        memcpy(&a, x, sizeof(a));                      \
        memcpy(&b, y, sizeof(b));                      \
        r = op == SUM    ? (type)((utype)a + (utype)b) \
            : op == PROD ? (type)((utype)a * (utype)b) \
            : op == MIN_ ? MIN(a, b)                   \
            : op == MAX_ ? MAX(a, b)                   \
            : op == BAND ? (a & b)                     \
            : op == BOR  ? (a | b)                     \
            : op == BXOR ? (a ^ b)                     \
            : op == LAND ? (a && b)                    \
            : op == LOR  ? (a || b)                    \
                         : (!a != !b);                  \
        memcpy(z, &r, sizeof(r));                      \
        return;                                        \
    }
#define SCALAR_FLOATING(num, type)    \
    case num: {                       \
        type a, b, r;                 \
        memcpy(&a, x, sizeof(a));     \
        memcpy(&b, y, sizeof(b));     \
        r = op == SUM    ? a + b      \
            : op == PROD ? a * b      \
            : op == MIN_ ? MIN(a, b)  \
            : op == MAX_ ? MAX(a, b)  \
            : op == LAND ? (a && b)   \
            : op == LOR  ? (a || b)   \
                         : (!a != !b); \
        memcpy(z, &r, sizeof(r));     \
        return;                       \
    }
#define SCALAR_COMPLEX(num, type)                                   \
    case num: {                                                     \
        type a[2], b[2], r[2];                                      \
        memcpy(a, x, sizeof(a));                                    \
        memcpy(b, y, sizeof(b));                                    \
        r[0] = op == SUM ? a[0] + b[0] : a[0] * b[0] - a[1] * b[1]; \
        r[1] = op == SUM ? a[1] + b[1] : a[0] * b[1] + a[1] * b[0]; \
        memcpy(z, r, sizeof(r));                                    \
        return;                                                     \
    }

static void apply_scalar(uint32_t op, uint8_t num, const char *x, const char *y, char *z)
{
    switch (num) {
        SCALAR_INTEGER(NUM_I8, int8_t, unsigned)
        SCALAR_INTEGER(NUM_I16, int16_t, unsigned)
        SCALAR_INTEGER(NUM_I32, int32_t, unsigned)
        SCALAR_INTEGER(NUM_I64, int64_t, uint64_t)
        SCALAR_INTEGER(NUM_I128, num_i128, num_u128)
        SCALAR_INTEGER(NUM_U8, uint8_t, unsigned)
        SCALAR_INTEGER(NUM_U16, uint16_t, unsigned)
        SCALAR_INTEGER(NUM_U32, uint32_t, unsigned)
        SCALAR_INTEGER(NUM_U64, uint64_t, uint64_t)
        SCALAR_FLOATING(NUM_F32, float)
        SCALAR_FLOATING(NUM_F64, double)
        SCALAR_FLOATING(NUM_FL, long double)
        SCALAR_COMPLEX(NUM_C32, float)
        SCALAR_COMPLEX(NUM_C64, double)
        SCALAR_COMPLEX(NUM_CL, long double)
#if NUM_HAVE_F16
        SCALAR_FLOATING(NUM_F16, num_f16)
        SCALAR_COMPLEX(NUM_C16, num_f16)
#endif
#if NUM_HAVE_F128
        SCALAR_FLOATING(NUM_F128, num_f128)
        SCALAR_COMPLEX(NUM_C128, num_f128)
#endif
    }
}

/* Small integers, whose sums and products every representation holds exactly. */
#define FILL(num, type)                                        \
    case num:                                                  \
        for (size_t i = 0; i < n; i++) {                       \
            type v = (type)random_in_range(0, 9);              \
            memcpy((char *)to + i * sizeof(v), &v, sizeof(v)); \
        }                                                      \
        return;

static void fill_small_values(uint8_t num, void *to, size_t n)
{
    switch (num) {
        FILL(NUM_F32, float)
        FILL(NUM_F64, double)
        FILL(NUM_FL, long double)
#if NUM_HAVE_F16
        FILL(NUM_F16, num_f16)
#endif
#if NUM_HAVE_F128
        FILL(NUM_F128, num_f128)
#endif
    }
}

static void fill_type(const struct dtype *t, char *to, size_t n)
{
    uint8_t num = dt_kinds[t->kind].num;
    if (dt_kinds[t->kind].class == CLASS_LOGICAL && t->size == 1)
        for (size_t i = 0; i < n; i++)
            to[i] = (char)random_in_range(0, 1);
    else if (num >= NUM_C16)
        fill_small_values((uint8_t)(num - NUM_C16 + NUM_F16), to, 2 * n);
    else if (num >= NUM_F16)
        fill_small_values(num, to, n);
    else
        random_fill(to, n * (size_t)t->size);
    /* Some zeros, so that logical operators have false operands. */
    for (size_t i = 0; num < NUM_F16 && i < n; i++)
        if (random_in_range(0, 2) == 0)
            memset(to + i * (size_t)t->size, 0, (size_t)t->size);
}

static void check_op(uint32_t handle, struct dtype *t, size_t n, size_t shift)
{
    struct op *op = op_predefined(handle);
    size_t size = (size_t)t->size, bytes = n * size;
    char *x = malloc(bytes + shift + 1), *y = malloc(bytes + shift + 1), *z = malloc(bytes + 1),
         *w = malloc(bytes + 1);
    fill_type(t, x + shift, n);
    fill_type(t, y + shift, n);
    for (size_t i = 0; i < n; i++)
        apply_scalar(handle, dt_kinds[t->kind].num, x + shift + i * size, y + shift + i * size, w + i * size);
    EXPECT(op_apply3(op, x + shift, y + shift, z, (MPI_Count)n, t));
    op_apply(op, x + shift, y + shift, (MPI_Count)n, t);
    bool same = memcmp(z, w, bytes) == 0 && memcmp(y + shift, w, bytes) == 0;
    /* x87 long doubles contain padding bytes. */
    bool padded = (dt_kinds[t->kind].num == NUM_FL || dt_kinds[t->kind].num == NUM_CL) && LDBL_MANT_DIG == 64;
    if (!same && !padded) {
        printf("operator %#x on %s, %zu elements at offset %zu: wrong result\n", handle, t->name, n, shift);
        EXPECT(same);
    }
    free(x);
    free(y);
    free(z);
    free(w);
}

static void test_equal_to_scalar_code(void)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 16, 33, 101};
    for (size_t i = 0; i < COUNT_OF(all_ops); i++) {
        for (int kind = KIND_MIXED + 1; kind < KIND_LIMIT; kind++) {
            struct dtype *t = dt_predefined(dt_kinds[kind].handle);
            if (op_check(op_predefined(all_ops[i]), t) || dt_kinds[kind].class == CLASS_PAIR)
                continue;
            for (size_t k = 0; k < COUNT_OF(counts); k++)
                check_op(all_ops[i], t, counts[k], k % 2 ? 1 + k : 0);
        }
    }
}

#define CHECK_LOC(type, value, index)                                                             \
    do {                                                                                          \
        struct {                                                                                  \
            value v;                                                                              \
            index i;                                                                              \
        } a[50], lo[50], hi[50], in[50];                                                          \
        for (int k = 0; k < 50; k++) {                                                            \
            a[k].v = lo[k].v = hi[k].v = (value)random_in_range(0, 3);                            \
            a[k].i = lo[k].i = hi[k].i = (index)random_in_range(0, 3);                            \
            in[k].v = (value)random_in_range(0, 3);                                               \
            in[k].i = (index)random_in_range(0, 3);                                               \
        }                                                                                         \
        EXPECT_EQ(op_check(op_predefined(MINLOC), type), 0);                                      \
        op_apply(op_predefined(MINLOC), in, lo, 50, type);                                        \
        op_apply(op_predefined(MAXLOC), in, hi, 50, type);                                        \
        for (int k = 0; k < 50; k++) {                                                            \
            index least = in[k].i < a[k].i ? in[k].i : a[k].i;                                    \
            EXPECT(lo[k].v == MIN(in[k].v, a[k].v) && hi[k].v == MAX(in[k].v, a[k].v));           \
            EXPECT(lo[k].i == (in[k].v == a[k].v ? least : in[k].v < a[k].v ? in[k].i : a[k].i)); \
            EXPECT(hi[k].i == (in[k].v == a[k].v ? least : in[k].v > a[k].v ? in[k].i : a[k].i)); \
        }                                                                                         \
    } while (0)

static void test_minloc_and_maxloc(void)
{
    CHECK_LOC(dtype_from_handle(MPI_FLOAT_INT), float, int);
    CHECK_LOC(dtype_from_handle(MPI_DOUBLE_INT), double, int);
    CHECK_LOC(dtype_from_handle(MPI_LONG_INT), long, int);
    CHECK_LOC(dtype_from_handle(MPI_2INT), int, int);
    CHECK_LOC(dtype_from_handle(MPI_SHORT_INT), short, int);
    CHECK_LOC(dtype_from_handle(MPI_LONG_DOUBLE_INT), long double, int);
    CHECK_LOC(dtype_from_handle(MPI_2REAL), float, float);
    CHECK_LOC(dtype_from_handle(MPI_2DOUBLE_PRECISION), double, double);
    CHECK_LOC(dtype_from_handle(MPI_2INTEGER), int, int);
    struct dtype *t;
    EXPECT_EQ(dtype_value_index(dtype_from_handle(MPI_DOUBLE), dtype_from_handle(MPI_INT64_T), &t), 0);
    CHECK_LOC(t, double, int64_t);
    EXPECT_EQ(dtype_value_index(dtype_from_handle(MPI_INT8_T), dtype_from_handle(MPI_UINT64_T), &t), 0);
    CHECK_LOC(t, int8_t, uint64_t);
}

/* A temporary buffer may end after the data of the last pair, before its padding. */
static void test_pairs_without_trailing_padding(void)
{
    struct dtype *t = dtype_from_handle(MPI_LONG_DOUBLE_INT);
    MPI_Aint gap;
    size_t span = (size_t)dt_span(t, 3, &gap);
    char *a = calloc(1, span), *b = calloc(1, span);
    op_apply(op_predefined(MAXLOC), a, b, 3, t);
    EXPECT_EQ(b[span - 1], 0);
    free(a);
    free(b);
}

static int user_calls;
static MPI_Datatype seen_type;

static void subtract(void *in, void *inout, int *len, MPI_Datatype *type)
{
    int *a = in, *b = inout;
    user_calls++;
    seen_type = *type;
    for (int i = 0; i < *len; i++)
        b[i] = a[i] - b[i];
    *len = 0; /* a user function may change its arguments */
}

static void subtract_large(void *in, void *inout, MPI_Count *len, MPI_Datatype *type)
{
    int n = (int)*len;
    subtract(in, inout, &n, type);
}

static void test_user_operators(void)
{
    struct op *small, *large;
    struct dtype *t;
    EXPECT_EQ(op_new(subtract, NULL, false, &small), 0);
    EXPECT_EQ(op_new(NULL, subtract_large, true, &large), 0);
    EXPECT(!small->commutative && large->commutative && large->large);
    EXPECT(op_from_handle(op_handle(small)) == small);
    dtype_contiguous(1, dtype_from_handle(MPI_INT), false, &t);
    dtype_commit(t);
    EXPECT_EQ(op_check(small, t), 0);
    int a[3] = {10, 20, 30}, b[3] = {1, 2, 3};
    op_apply(small, a, b, 3, t);
    EXPECT(b[0] == 9 && b[1] == 18 && b[2] == 27);
    EXPECT(seen_type == dtype_handle(t));
    EXPECT(!op_apply3(small, a, a, b, 3, t));
    op_apply(large, a, b, 3, dtype_from_handle(MPI_INT));
    EXPECT(b[0] == 1 && b[1] == 2 && seen_type == MPI_INT);
    EXPECT_EQ(user_calls, 2);
    dtype_release(t);
    op_release(small);
    op_release(large);
}

static long long tallied_elements;
static void count_elements(void *in, void *inout, int *len, MPI_Datatype *type)
{
    user_calls++;
    tallied_elements += *len;
}

/* A count that exceeds INT_MAX is passed to an int function in several calls. */
static void test_long_counts_are_split(void)
{
    struct op *op;
    struct dtype *empty, *t;
    user_calls = 0;
    op_new(count_elements, NULL, true, &op);
    dtype_contiguous(0, dtype_from_handle(MPI_INT), false, &empty);
    dtype_resized(empty, 0, 0, false, &t);
    op_apply(op, NULL, NULL, 5000000000, t);
    EXPECT_EQ(user_calls, 3);
    EXPECT_EQ(tallied_elements, 5000000000);
    dtype_release(empty);
    dtype_release(t);
    op_release(op);
}

static void test_derived_types(void)
{
    struct dtype *t, *mixed;
    struct op *sum = op_predefined(SUM);
    int a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {10, 10, 10, 10, 10, 10};
    dtype_vector(3, 1, 2, dtype_from_handle(MPI_INT), false, &t);
    dtype_commit(t);
    EXPECT_EQ(op_check(sum, t), MPI_ERR_OP);
    EXPECT(strlen(err_detail(MPI_ERR_OP)) > 10);
    EXPECT_EQ(op_check_accumulate(sum, t, 1), 0);
    EXPECT_EQ(op_check_accumulate(op_predefined(MINLOC), t, 1), MPI_ERR_OP);
    EXPECT_EQ(op_check_accumulate(op_predefined(MINLOC), t, 0), 0); /* a count of 0 is valid for any type */
    op_apply(sum, a, b, 1, t);
    EXPECT(b[0] == 11 && b[1] == 10 && b[2] == 13 && b[3] == 10 && b[4] == 15 && b[5] == 10);
    op_apply(op_predefined(REPLACE), a, b, 1, t);
    EXPECT(b[0] == 1 && b[1] == 10 && b[2] == 3);
    op_apply(op_predefined(NO_OP), a, b, 1, t);
    EXPECT(b[1] == 10);
    int n[2] = {1, 1};
    MPI_Aint at[2] = {0, 4};
    MPI_Datatype types[2] = {MPI_INT, MPI_FLOAT};
    dtype_struct(2, ivec_from_int(n), ivec_from_int64(at), types, &mixed);
    EXPECT_EQ(op_check_accumulate(sum, mixed, 1), MPI_ERR_TYPE);
    EXPECT_EQ(op_check_accumulate(op_predefined(REPLACE), mixed, 1), 0);
    dtype_release(t);
    dtype_release(mixed);
}

int main(void)
{
    TEST_RUN(test_operators_are_defined);
    TEST_RUN(test_equal_to_scalar_code);
    TEST_RUN(test_minloc_and_maxloc);
    TEST_RUN(test_pairs_without_trailing_padding);
    TEST_RUN(test_user_operators);
    TEST_RUN(test_long_counts_are_split);
    TEST_RUN(test_derived_types);
    return test_result();
}
