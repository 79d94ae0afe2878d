/* types.c: datatypes, packing, local reductions, statuses and buffers of 2^31 - 1, 2^31 and 2^31 + 1 bytes by
 * every large-count function that needs no partner.
 *
 * ranks: 1
 * also: BIG=0
 * also: BIG=1
 * alone: yes
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <limits.h>

#include "large/big.h"

static struct big full, in;
static MPI_Count n;

/* Converts to int, MPI_UNDEFINED if it does not fit. */
static int narrow_to_int(MPI_Count value)
{
    return value > INT_MAX ? MPI_UNDEFINED : (int)value;
}

static void check_sizes(MPI_Datatype t, MPI_Count size, MPI_Count extent)
{
    MPI_Count c = -1, lb = -1, e = -1;
    int small = -1;
    MPI_Type_size_c(t, &c);
    EXPECT_EQ(c, size);
    MPI_Type_size_x(t, &c);
    EXPECT_EQ(c, size);
    MPI_Type_size(t, &small);
    EXPECT_EQ(small, narrow_to_int(size));
    MPI_Type_get_extent_c(t, &lb, &e);
    EXPECT_EQ(lb, 0);
    EXPECT_EQ(e, extent);
    MPI_Type_get_true_extent_c(t, &lb, &e);
    EXPECT_EQ(lb, 0);
    EXPECT_EQ(e, size);
}

/* Checks that the contents of a type are returned, in large counts. */
static void check_contents(MPI_Datatype t, int combiner, MPI_Count nlarge, const MPI_Count *wanted)
{
    MPI_Count nint = -1, naddr = -1, ncount = -1, ntypes = -1, large[16] = {0};
    MPI_Aint addresses[4];
    MPI_Datatype types[4];
    int ints[8], made = -1;
    MPI_Type_get_envelope_c(t, &nint, &naddr, &ncount, &ntypes, &made);
    EXPECT_EQ(made, combiner);
    EXPECT_EQ(ncount, nlarge);
    if (ncount != nlarge || nint > 8 || naddr > 4 || ntypes > 4)
        return;
    MPI_Type_get_contents_c(t, nint, naddr, ncount, ntypes, ints, addresses, large, types);
    for (MPI_Count i = 0; i < ncount; i++)
        EXPECT_EQ(large[i], wanted[i]);
}

/* Packs and unpacks one element of the type, and frees it. */
static void pack_and_unpack(MPI_Datatype t)
{
    MPI_Count room = -1, at = 0;
    MPI_Type_commit(&t);
    MPI_Pack_size_c(1, t, MPI_COMM_WORLD, &room);
    EXPECT(room >= n);
    big_clear(&in, n);
    MPI_Pack_c(full.at, 1, t, in.at, n, &at, MPI_COMM_WORLD);
    EXPECT_EQ(at, n);
    EXPECT_EQ(big_count_wrong(&in, 0, n, 0xff), 0);
    MPI_Type_free(&t);
}

static void test_constructors(void)
{
    MPI_Datatype t, byte[1] = {MPI_BYTE};
    const MPI_Count zero[1] = {0}, whole[1] = {n}, part = n / 3;
    const int one[1] = {1}, block[1] = {MPI_DISTRIBUTE_BLOCK}, usual[1] = {MPI_DISTRIBUTE_DFLT_DARG};

    MPI_Type_contiguous_c(n, MPI_BYTE, &t);
    check_sizes(t, n, n);
    check_contents(t, MPI_COMBINER_CONTIGUOUS, 1, (MPI_Count[]){n});
    pack_and_unpack(t);

    MPI_Type_vector_c(n, 1, 1, MPI_BYTE, &t);
    check_sizes(t, n, n);
    check_contents(t, MPI_COMBINER_VECTOR, 3, (MPI_Count[]){n, 1, 1});
    MPI_Type_free(&t);

    MPI_Type_create_hvector_c(3, part, part, MPI_BYTE, &t);
    check_sizes(t, 3 * part, 3 * part);
    check_contents(t, MPI_COMBINER_HVECTOR, 3, (MPI_Count[]){3, part, part});
    MPI_Type_free(&t);

    MPI_Type_indexed_c(1, whole, zero, MPI_BYTE, &t);
    check_sizes(t, n, n);
    check_contents(t, MPI_COMBINER_INDEXED, 3, (MPI_Count[]){1, n, 0});
    MPI_Type_free(&t);

    MPI_Type_create_hindexed_c(1, whole, zero, MPI_BYTE, &t);
    check_sizes(t, n, n);
    check_contents(t, MPI_COMBINER_HINDEXED, 3, (MPI_Count[]){1, n, 0});
    MPI_Type_free(&t);

    MPI_Type_create_indexed_block_c(1, n, zero, MPI_BYTE, &t);
    check_sizes(t, n, n);
    check_contents(t, MPI_COMBINER_INDEXED_BLOCK, 3, (MPI_Count[]){1, n, 0});
    MPI_Type_free(&t);

    MPI_Type_create_hindexed_block_c(1, n, zero, MPI_BYTE, &t);
    check_sizes(t, n, n);
    check_contents(t, MPI_COMBINER_HINDEXED_BLOCK, 3, (MPI_Count[]){1, n, 0});
    MPI_Type_free(&t);

    MPI_Type_create_struct_c(1, whole, zero, byte, &t);
    check_sizes(t, n, n);
    check_contents(t, MPI_COMBINER_STRUCT, 3, (MPI_Count[]){1, n, 0});
    pack_and_unpack(t);

    MPI_Type_create_subarray_c(1, whole, whole, zero, MPI_ORDER_C, MPI_BYTE, &t);
    check_sizes(t, n, n);
    check_contents(t, MPI_COMBINER_SUBARRAY, 3, (MPI_Count[]){n, n, 0});
    MPI_Type_free(&t);

    MPI_Type_create_darray_c(1, 0, 1, whole, block, usual, one, MPI_ORDER_C, MPI_BYTE, &t);
    check_sizes(t, n, n);
    check_contents(t, MPI_COMBINER_DARRAY, 1, (MPI_Count[]){n});
    MPI_Type_free(&t);

    MPI_Type_create_resized_c(MPI_BYTE, 0, n, &t);
    check_sizes(t, 1, n);
    check_contents(t, MPI_COMBINER_RESIZED, 2, (MPI_Count[]){0, n});
    MPI_Type_free(&t);
}

/* Tests displacements above INT_MAX: two bytes at a distance of n, in each type that has displacements. */
static void test_large_displacements(void)
{
    MPI_Datatype t[6], byte[2] = {MPI_BYTE, MPI_BYTE};
    const MPI_Count ones[2] = {1, 1}, places[2] = {0, n}, sizes[1] = {n + 1}, last[1] = {n}, one[1] = {1};
    MPI_Type_vector_c(2, 1, n, MPI_BYTE, &t[0]);
    MPI_Type_create_hvector_c(2, 1, n, MPI_BYTE, &t[1]);
    MPI_Type_indexed_c(2, ones, places, MPI_BYTE, &t[2]);
    MPI_Type_create_hindexed_block_c(2, 1, places, MPI_BYTE, &t[3]);
    MPI_Type_create_struct_c(2, ones, places, byte, &t[4]);
    MPI_Type_create_subarray_c(1, sizes, one, last, MPI_ORDER_C, MPI_BYTE, &t[5]);
    for (int i = 0; i < 6; i++) {
        unsigned char got[2] = {0, 0};
        MPI_Count at = 0, size = -1;
        MPI_Type_commit(&t[i]);
        MPI_Type_size_c(t[i], &size);
        EXPECT_EQ(size, i < 5 ? 2 : 1);
        MPI_Pack_c(full.at, 1, t[i], got, 2, &at, MPI_COMM_WORLD);
        EXPECT_EQ(at, size);
        EXPECT_EQ(got[size - 1], big_value(n));
        MPI_Type_free(&t[i]);
    }
}

static void test_packing(void)
{
    MPI_Count at = 0, size = -1;
    MPI_Pack_size_c(n, MPI_BYTE, MPI_COMM_WORLD, &size);
    EXPECT(size >= n);
    big_clear(&in, n);
    MPI_Pack_c(full.at, n, MPI_BYTE, in.at, n, &at, MPI_COMM_WORLD);
    EXPECT_EQ(at, n);
    EXPECT_EQ(big_count_wrong(&in, 0, n, 0xff), 0);
    at = 0;
    big_clear(&in, n);
    MPI_Unpack_c(full.at, n, &at, in.at, n, MPI_BYTE, MPI_COMM_WORLD);
    EXPECT_EQ(at, n);
    EXPECT_EQ(big_count_wrong(&in, 0, n, 0xff), 0);

    MPI_Pack_external_size_c("external32", n, MPI_BYTE, &size);
    EXPECT_EQ(size, n);
    at = 0;
    big_clear(&in, n);
    MPI_Pack_external_c("external32", full.at, n, MPI_BYTE, in.at, n, &at);
    EXPECT_EQ(at, n);
    EXPECT_EQ(big_count_wrong(&in, 0, n, 0xff), 0);
    at = 0;
    big_clear(&in, n);
    MPI_Unpack_external_c("external32", full.at, n, &at, in.at, n, MPI_BYTE);
    EXPECT_EQ(at, n);
    EXPECT_EQ(big_count_wrong(&in, 0, n, 0xff), 0);
}

static MPI_Count elements_reduced;

static void keep_left_operand(void *left, void *inout, MPI_Count *len, MPI_Datatype *type)
{
    (void)type;
    elements_reduced += *len;
    memcpy(inout, left, (size_t)*len);
}

static void test_reductions(void)
{
    MPI_Op op;
    big_clear(&in, n);
    memset(in.period, 0, BIG_PERIOD);
    memset(in.at, 0, BIG_PAGE);
    memset(in.at + big_edge_offset(n), 0, (size_t)n - big_edge_offset(n));
    MPI_Reduce_local_c(full.at, in.at, n, MPI_UINT8_T, MPI_BOR);
    EXPECT_EQ(big_count_wrong(&in, 0, n, 0xff), 0);
    MPI_Op_create_c(keep_left_operand, 1, &op);
    big_clear(&in, n);
    MPI_Reduce_local_c(full.at, in.at, n, MPI_UINT8_T, op);
    EXPECT_EQ(elements_reduced, n);
    EXPECT_EQ(big_count_wrong(&in, 0, n, 0xff), 0);
    MPI_Op_free(&op);
}

static void test_statuses(void)
{
    MPI_Status s = {0};
    MPI_Datatype pair;
    MPI_Count c = -1;
    int small = -1;
    MPI_Status_set_elements_c(&s, MPI_BYTE, n);
    MPI_Get_elements_c(&s, MPI_BYTE, &c);
    EXPECT_EQ(c, n);
    MPI_Get_count_c(&s, MPI_BYTE, &c);
    EXPECT_EQ(c, n);
    MPI_Get_count(&s, MPI_BYTE, &small);
    EXPECT_EQ(small, narrow_to_int(n));
    MPI_Get_elements(&s, MPI_BYTE, &small);
    EXPECT_EQ(small, narrow_to_int(n));
    MPI_Status_set_elements_x(&s, MPI_INT, n);
    MPI_Get_elements_x(&s, MPI_INT, &c);
    EXPECT_EQ(c, n);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Get_elements_c(&s, pair, &c);
    EXPECT_EQ(c, n);
    MPI_Get_count_c(&s, pair, &c);
    EXPECT_EQ(c, n % 2 ? MPI_UNDEFINED : n / 2);
    MPI_Type_free(&pair);
}

static void test_buffers(void)
{
    MPI_Session session;
    void *at = NULL;
    MPI_Count size = -1;
    int small = -1;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_attach_buffer_c(session, in.at, n);
    MPI_Session_detach_buffer_c(session, &at, &size);
    EXPECT(at == in.at);
    EXPECT_EQ(size, n);
    MPI_Session_finalize(&session);
    MPI_Buffer_attach_c(in.at, n);
    MPI_Buffer_detach(&at, &small);
    EXPECT(at == in.at);
    EXPECT_EQ(small, narrow_to_int(n));
}

int main(int argc, char **argv)
{
    int which;
    big_skip_under_sanitizer();
    mpitest_begin(&argc, &argv);
    n = big_count(&which);
    full = big_source(n + BIG_PAGE, 0xff);
    in = big_target(n);
    test_constructors();
    test_large_displacements();
    test_packing();
    test_reductions();
    test_statuses();
    test_buffers();
    return mpitest_end();
}
