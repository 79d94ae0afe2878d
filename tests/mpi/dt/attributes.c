/* attributes.c: attributes of datatypes: copied by MPI_Type_dup, deleted by MPI_Type_free, retained while
 * another handle of the type exists.
 *
 * ranks: 1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static int copies, deletions;

static int on_copy(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag)
{
    copies++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int on_delete(MPI_Datatype type, int keyval, void *value, void *extra)
{
    deletions++;
    return MPI_SUCCESS;
}

static int refuse_copy(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag)
{
    return MPI_ERR_OTHER;
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Datatype t, dup, outer, inner[1];
    int key, bad, flag, count;
    char place[8];
    void *value;
    MPI_Type_create_keyval(on_copy, on_delete, &key, NULL);
    MPI_Type_contiguous(3, MPI_INT, &t);
    MPI_Type_set_attr(t, key, place);
    MPI_Type_dup(t, &dup);
    EXPECT_EQ(copies, 1);
    MPI_Type_get_attr(dup, key, &value, &flag);
    EXPECT(flag && value == place + 1);
    MPI_Type_free(&dup);
    EXPECT_EQ(deletions, 1);
    /* A second handle from the contents of another type: attributes remain until both handles are freed. */
    MPI_Type_contiguous(2, t, &outer);
    MPI_Type_get_contents(outer, 1, 0, 1, &count, NULL, inner);
    MPI_Type_free(&t);
    EXPECT_EQ(deletions, 1);
    MPI_Type_free(&inner[0]);
    EXPECT_EQ(deletions, 2);
    MPI_Type_free(&outer);
    /* A copy function that fails leaves no new type. */
    MPI_Type_create_keyval(refuse_copy, MPI_TYPE_NULL_DELETE_FN, &bad, NULL);
    MPI_Type_contiguous(3, MPI_INT, &t);
    MPI_Type_set_attr(t, bad, place);
    dup = MPI_INT;
    EXPECT(MPI_Type_dup(t, &dup) != MPI_SUCCESS);
    EXPECT(dup == MPI_DATATYPE_NULL);
    MPI_Type_free(&t);
    MPI_Type_free_keyval(&key);
    MPI_Type_free_keyval(&bad);
    EXPECT(key == MPI_KEYVAL_INVALID);
    return mpitest_end();
}
