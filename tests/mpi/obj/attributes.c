/* attributes.c: attributes on communicators: predefined ones, callbacks on dup and free, errors from
 * callbacks, callbacks that call MPI, the order at MPI_Finalize.
 *
 * ranks: 1 2 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "mpitest.h"

static int copies, deletes, refuse_copy, refuse_delete;

static int on_copy(MPI_Comm c, int keyval, void *extra, void *in, void *out, int *flag)
{
    int size, set;
    void *seen;
    MPI_Comm_size(c, &size); /* callbacks may call MPI */
    MPI_Comm_get_attr(c, keyval, &seen, &set);
    EXPECT(size == mpitest_size && set && seen == in && extra == &copies);
    if (refuse_copy)
        return refuse_copy;
    copies++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int on_delete(MPI_Comm c, int keyval, void *value, void *extra)
{
    void *seen;
    int set;
    MPI_Comm_get_attr(c, keyval, &seen, &set); /* the attribute can be read during its deletion */
    EXPECT(set && seen == value && extra == &copies);
    if (refuse_delete)
        return refuse_delete;
    deletes++;
    return MPI_SUCCESS;
}

static void test_predefined(void)
{
    static const int keyvals[] = {MPI_TAG_UB, MPI_HOST, MPI_IO, MPI_WTIME_IS_GLOBAL, MPI_LASTUSEDCODE};
    int *value, flag;
    for (size_t i = 0; i < sizeof(keyvals) / sizeof(keyvals[0]); i++) {
        MPI_Comm_get_attr(MPI_COMM_WORLD, keyvals[i], &value, &flag);
        EXPECT(flag);
    }
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    EXPECT_EQ(*value, INT_MAX);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
    int before = *value, errclass;
    MPI_Add_error_class(&errclass);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
    EXPECT(errclass > before && *value == errclass);
    MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    EXPECT(flag && *value == INT_MAX);
}

static void test_dup_and_free(void)
{
    MPI_Comm a, b;
    char word[8];
    void *value;
    int keyval, flag;
    MPI_Comm_create_keyval(on_copy, on_delete, &keyval, &copies);
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Comm_set_attr(a, keyval, word);
    MPI_Comm_dup(a, &b);
    EXPECT_EQ(copies, 1);
    MPI_Comm_get_attr(b, keyval, &value, &flag);
    EXPECT(flag && value == word + 1);
    MPI_Comm_set_attr(b, keyval, word + 2); /* replaces the attribute: the old value is deleted */
    EXPECT_EQ(deletes, 1);
    MPI_Comm_free(&b);
    EXPECT_EQ(deletes, 2);

    MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN);
    refuse_copy = MPI_ERR_OTHER;
    b = MPI_COMM_NULL;
    EXPECT_EQ(MPI_Comm_dup(a, &b), MPI_ERR_OTHER);
    EXPECT(b == MPI_COMM_NULL);
    refuse_copy = 0;
    refuse_delete = MPI_ERR_OTHER;
    EXPECT_EQ(MPI_Comm_free(&a), MPI_ERR_OTHER);
    EXPECT(a != MPI_COMM_NULL);
    EXPECT_EQ(MPI_Comm_delete_attr(a, keyval), MPI_ERR_OTHER);
    refuse_delete = 0;
    MPI_Comm_free_keyval(&keyval);
    EXPECT_EQ(keyval, MPI_KEYVAL_INVALID);
    EXPECT_EQ(MPI_Comm_free(&a), MPI_SUCCESS);
    EXPECT_EQ(deletes, 3);
}

static void test_invalid_keyvals(void)
{
    int keyval, flag;
    void *value;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, NULL), MPI_ERR_KEYVAL);
    EXPECT_EQ(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL), MPI_ERR_KEYVAL);
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &keyval, NULL);
    EXPECT_EQ(MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag), MPI_ERR_KEYVAL);
    MPI_Type_free_keyval(&keyval);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first, in reverse order of creation, with MPI still
 * usable. */
static int expected_attribute = 3;

static int check_order_at_finalize(MPI_Comm c, int keyval, void *value, void *extra)
{
    int finalized, rank;
    (void)keyval, (void)extra;
    MPI_Finalized(&finalized);
    MPI_Comm_rank(c, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (*(int *)value != --expected_attribute || finalized || rank != 0) {
        fprintf(stderr, "rank %d: MPI_Finalize deleted attribute %d, expected %d\n", mpitest_rank,
                *(int *)value, expected_attribute);
        exit(3);
    }
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    static int values[3] = {0, 1, 2};
    mpitest_begin(&argc, &argv);
    test_predefined();
    test_dup_and_free();
    test_invalid_keyvals();
    for (int i = 0; i < 3; i++) {
        int keyval;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, check_order_at_finalize, &keyval, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &values[i]);
    }
    int rc = mpitest_end();
    return rc || expected_attribute != 0;
}
