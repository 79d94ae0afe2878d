/* pack.c: MPI_Pack and MPI_Unpack over several positions, and the external32 forms.
 *
 * ranks: 1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static void test_several_positions(void)
{
    char buffer[200];
    int position = 0, size, a[12], i3 = 3, back3 = 0, back[6];
    double d[2] = {1.5, -2.5}, e[2] = {0, 0};
    MPI_Datatype column;
    MPI_Type_vector(3, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < 12; i++)
        a[i] = 10 + i;
    MPI_Pack(&i3, 1, MPI_INT, buffer, sizeof(buffer), &position, MPI_COMM_WORLD);
    EXPECT_EQ(position, 4);
    MPI_Pack(a, 1, column, buffer, sizeof(buffer), &position, MPI_COMM_WORLD);
    MPI_Pack(d, 2, MPI_DOUBLE, buffer, sizeof(buffer), &position, MPI_COMM_WORLD);
    EXPECT_EQ(position, 4 + 12 + 16);
    MPI_Pack_size(1, column, MPI_COMM_WORLD, &size);
    EXPECT(size >= 12);
    int total = position;
    position = 0;
    memset(back, 0, sizeof(back));
    MPI_Unpack(buffer, total, &position, &back3, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Unpack(buffer, total, &position, back, 1, column, MPI_COMM_WORLD);
    MPI_Unpack(buffer, total, &position, e, 2, MPI_DOUBLE, MPI_COMM_WORLD);
    EXPECT_EQ(position, total);
    EXPECT(back3 == 3 && e[0] == 1.5 && e[1] == -2.5);
    EXPECT(back[0] == 10 && back[1] == 0 && back[2] == 12 && back[4] == 14);
    MPI_Count p = 0;
    MPI_Pack_c(a, 2, column, buffer, sizeof(buffer), &p, MPI_COMM_SELF);
    EXPECT_EQ(p, 24);
    /* If the buffer is too small, nothing is packed. */
    position = 190;
    EXPECT(MPI_Pack(a, 1, column, buffer, sizeof(buffer), &position, MPI_COMM_WORLD) != MPI_SUCCESS);
    EXPECT_EQ(position, 190);
    MPI_Type_free(&column);
}

static void test_external(void)
{
    char buffer[64];
    const unsigned char wanted[] = {0, 0, 1, 2, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0};
    MPI_Aint position = 0, size;
    int a[2] = {0x102, -1}, back[2];
    double d = 1.5, e = 0;
    MPI_Pack_external("external32", a, 2, MPI_INT, buffer, sizeof(buffer), &position);
    EXPECT_EQ(position, 8);
    MPI_Pack_external("external32", &d, 1, MPI_DOUBLE, buffer, sizeof(buffer), &position);
    EXPECT_EQ(position, 16);
    EXPECT(memcmp(buffer, wanted, 16) == 0);
    position = 0;
    MPI_Unpack_external("external32", buffer, 16, &position, back, 2, MPI_INT);
    MPI_Unpack_external("external32", buffer, 16, &position, &e, 1, MPI_DOUBLE);
    EXPECT(back[0] == 0x102 && back[1] == -1 && e == 1.5);
    MPI_Pack_external_size("external32", 3, MPI_LONG_DOUBLE, &size);
    EXPECT_EQ(size, 48);
    int errclass, code = MPI_Pack_external_size("native", 3, MPI_INT, &size);
    MPI_Error_class(code, &errclass);
    EXPECT_EQ(errclass, MPI_ERR_UNSUPPORTED_DATAREP);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    test_several_positions();
    test_external();
    return mpitest_end();
}
