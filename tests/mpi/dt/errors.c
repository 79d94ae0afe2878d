/* errors.c: invalid arguments of calls about datatypes and operators return the correct error class, and
 * the program continues.
 *
 * ranks: 1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static void test_types(void)
{
    MPI_Datatype t = MPI_DATATYPE_NULL, byte = MPI_BYTE;
    int size, one[1] = {1}, zero[1] = {0}, minus[1] = {-1};
    EXPECT_CLASS(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT);
    EXPECT_CLASS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t), MPI_ERR_TYPE);
    EXPECT_CLASS(MPI_Type_size(MPI_DATATYPE_NULL, &size), MPI_ERR_TYPE);
    EXPECT_CLASS(MPI_Type_commit(&t), MPI_ERR_TYPE);
    EXPECT_CLASS(MPI_Type_free(&t), MPI_ERR_TYPE);
    EXPECT_CLASS(MPI_Type_free(&byte), MPI_ERR_TYPE);
    EXPECT(byte == MPI_BYTE);
    EXPECT(MPI_Type_indexed(1, minus, zero, MPI_INT, &t) != MPI_SUCCESS);
    EXPECT_CLASS(MPI_Type_create_subarray(1, one, one, one, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_Type_create_f90_integer(100, &t), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &t), MPI_ERR_ARG);
    EXPECT(t == MPI_DATATYPE_NULL);
}

static void test_uncommitted(void)
{
    MPI_Datatype t;
    int data[2] = {0}, position = 0;
    char buffer[8];
    MPI_Type_contiguous(2, MPI_INT, &t);
    EXPECT_CLASS(MPI_Send(data, 1, t, MPI_PROC_NULL, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    EXPECT_CLASS(MPI_Pack(data, 1, t, buffer, 8, &position, MPI_COMM_WORLD), MPI_ERR_TYPE);
    MPI_Type_commit(&t);
    MPI_Type_commit(&t);
    EXPECT_EQ(MPI_Pack(data, 1, t, buffer, 8, &position, MPI_COMM_WORLD), MPI_SUCCESS);
    MPI_Type_free(&t);
}

static void test_operators(void)
{
    MPI_Op op = MPI_SUM, none = MPI_OP_NULL;
    int a = 1, b = 2, n;
    char text[MPI_MAX_ERROR_STRING];
    EXPECT_CLASS(MPI_Op_free(&op), MPI_ERR_OP);
    EXPECT(op == MPI_SUM);
    EXPECT_CLASS(MPI_Op_free(&none), MPI_ERR_OP);
    EXPECT_CLASS(MPI_Reduce_local(&a, &b, 1, MPI_WCHAR, MPI_SUM), MPI_ERR_OP);
    EXPECT_CLASS(MPI_Reduce_local(&a, &b, 1, MPI_BYTE, MPI_MAX), MPI_ERR_OP);
    EXPECT_CLASS(MPI_Reduce_local(&a, &b, 1, MPI_INT, MPI_MINLOC), MPI_ERR_OP);
    EXPECT_CLASS(MPI_Reduce_local(&a, &b, 1, MPI_INT, MPI_REPLACE), MPI_ERR_OP);
    EXPECT_CLASS(MPI_Reduce_local(&a, &b, 1, MPI_INT, MPI_OP_NULL), MPI_ERR_OP);
    EXPECT_CLASS(MPI_Allreduce(&a, &b, 1, MPI_FLOAT_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_OP);
    int code = MPI_Allreduce(&a, &b, 1, MPI_FLOAT, MPI_BOR, MPI_COMM_WORLD);
    EXPECT_CLASS(code, MPI_ERR_OP);
    MPI_Error_string(code, text, &n);
    EXPECT(n > 0);
    EXPECT_EQ(b, 2);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    test_types();
    test_uncommitted();
    test_operators();
    return mpitest_end();
}
