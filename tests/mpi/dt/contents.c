/* contents.c: MPI_Type_get_envelope and MPI_Type_get_contents, in their int and large-count forms.
 *
 * ranks: 1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static void test_named(void)
{
    int ni, na, nd, combiner;
    MPI_Type_get_envelope(MPI_DOUBLE_INT, &ni, &na, &nd, &combiner);
    EXPECT(ni == 0 && na == 0 && nd == 0 && combiner == MPI_COMBINER_NAMED);
    EXPECT_EQ(MPI_Type_get_contents(MPI_INT, 0, 0, 0, &ni, NULL, NULL) != MPI_SUCCESS, 1);
}

static void test_nested(void)
{
    MPI_Datatype inner, outer, got[1], basic[1];
    int ni, na, nd, combiner, integers[3], size;
    MPI_Type_vector(3, 2, 5, MPI_INT, &inner);
    MPI_Type_contiguous(4, inner, &outer);
    MPI_Type_free(&inner);
    MPI_Type_get_envelope(outer, &ni, &na, &nd, &combiner);
    EXPECT(ni == 1 && na == 0 && nd == 1 && combiner == MPI_COMBINER_CONTIGUOUS);
    EXPECT_EQ(MPI_Type_get_contents(outer, 1, 0, 1, integers, NULL, got), MPI_SUCCESS);
    EXPECT_EQ(integers[0], 4);
    MPI_Type_free(&outer);
    /* The returned handle stays valid after all other handles are freed. */
    MPI_Type_size(got[0], &size);
    EXPECT_EQ(size, 24);
    MPI_Type_get_envelope(got[0], &ni, &na, &nd, &combiner);
    EXPECT(ni == 3 && combiner == MPI_COMBINER_VECTOR);
    MPI_Type_get_contents(got[0], 3, 0, 1, integers, NULL, basic);
    EXPECT(integers[0] == 3 && integers[1] == 2 && integers[2] == 5);
    EXPECT(basic[0] == MPI_INT);
    MPI_Type_free(&got[0]);
}

static void test_large(void)
{
    MPI_Datatype t, got[1];
    int ni, na, nd, combiner;
    MPI_Count i, a, c, d, counts[3];
    MPI_Type_create_hvector_c(3, 2, 50, MPI_INT, &t);
    MPI_Type_get_envelope_c(t, &i, &a, &c, &d, &combiner);
    EXPECT(i == 0 && a == 0 && c == 3 && d == 1 && combiner == MPI_COMBINER_HVECTOR);
    EXPECT_EQ(MPI_Type_get_contents_c(t, 0, 0, 3, 1, NULL, NULL, counts, got), MPI_SUCCESS);
    EXPECT(counts[0] == 3 && counts[1] == 2 && counts[2] == 50 && got[0] == MPI_INT);
    EXPECT(MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner) != MPI_SUCCESS);
    MPI_Type_free(&t);
    MPI_Type_create_hvector(3, 2, 50, MPI_INT, &t);
    MPI_Type_get_envelope_c(t, &i, &a, &c, &d, &combiner);
    EXPECT(i == 2 && a == 1 && c == 0 && d == 1);
    MPI_Aint address;
    int integers[2];
    EXPECT_EQ(MPI_Type_get_contents_c(t, 2, 1, 0, 1, integers, &address, NULL, got), MPI_SUCCESS);
    EXPECT(integers[1] == 2 && address == 50);
    EXPECT(MPI_Type_get_contents(t, 1, 1, 1, integers, &address, got) != MPI_SUCCESS);
    MPI_Type_free(&t);
}

static void test_f90(void)
{
    MPI_Datatype t;
    int ni, na, nd, combiner, integers[2];
    MPI_Type_create_f90_complex(6, MPI_UNDEFINED, &t);
    MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner);
    EXPECT(ni == 2 && na == 0 && nd == 0 && combiner == MPI_COMBINER_F90_COMPLEX);
    MPI_Type_get_contents(t, 2, 0, 0, integers, NULL, NULL);
    EXPECT(integers[0] == 6 && integers[1] == MPI_UNDEFINED);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    test_named();
    test_nested();
    test_large();
    test_f90();
    return mpitest_end();
}
