/* test_attr.c: attributes, tested without communicators: callbacks, their order and failures, keyvals that
 * outlive their handle.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "boot/boot.h"
#include "obj/attr.h"
#include "obj/attr_table.h"
#include "obj/proc.h"
#include "test.h"

typedef void (*any_function)(void);

static struct boot boot = {.nnodes = 1, .appnum = -1, .universe_size = 12};
static struct proc proc = {.boot = &boot};
static int deleted[32], ndeleted, refuse;

static int record_delete(MPI_Comm c, int keyval, void *value, void *extra)
{
    (void)c, (void)keyval, (void)extra;
    if (refuse)
        return refuse;
    deleted[ndeleted++] = *(int *)value;
    return MPI_SUCCESS;
}

static int copy_if_even(MPI_Comm c, int keyval, void *extra, void *value, void *out, int *flag)
{
    (void)c, (void)keyval;
    if (extra)
        return *(int *)extra;
    *flag = *(int *)value % 2 == 0;
    *(void **)out = value;
    return MPI_SUCCESS;
}

static int create_keyval(any_function copy, void *extra)
{
    int k;
    EXPECT_EQ(attr_keyval_create(&proc, ATTR_COMM, copy, (any_function)record_delete, extra, &k),
              MPI_SUCCESS);
    return k;
}

static void test_order_of_deletion(void)
{
    struct attr_set *set = NULL;
    int values[5] = {0, 1, 2, 3, 4}, keys[5];
    ndeleted = 0;
    for (int i = 0; i < 5; i++) {
        keys[i] = create_keyval((any_function)MPI_COMM_DUP_FN, NULL);
        EXPECT_EQ(attr_set(&proc, ATTR_COMM, MPI_COMM_SELF, &set, keys[i], &values[i]), MPI_SUCCESS);
    }
    EXPECT_EQ(attr_keyval_free(&proc, ATTR_COMM, &keys[2]), MPI_SUCCESS);
    EXPECT_EQ(keys[2], MPI_KEYVAL_INVALID);
    EXPECT_EQ(attr_delete_all(&proc, MPI_COMM_SELF, &set), MPI_SUCCESS);
    EXPECT(set == NULL);
    EXPECT_EQ(ndeleted, 5);
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(deleted[i], 4 - i);
}

static void test_copies(void)
{
    struct attr_set *set = NULL, *copy = NULL;
    int values[] = {1, 2, 3}, k[3];
    void *value;
    bool found;
    k[0] = create_keyval((any_function)copy_if_even, NULL);
    k[1] = create_keyval((any_function)copy_if_even, NULL);
    k[2] = create_keyval((any_function)MPI_COMM_NULL_COPY_FN, NULL);
    for (int i = 0; i < 3; i++)
        attr_set(&proc, ATTR_COMM, MPI_COMM_SELF, &set, k[i], &values[i]);
    EXPECT_EQ(attr_copy_all(&proc, MPI_COMM_SELF, set, &copy), MPI_SUCCESS);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(attr_get(&proc, ATTR_COMM, copy, k[i], &value, &found), MPI_SUCCESS);
        EXPECT_EQ(found, i == 1);
    }
    attr_delete_all(&proc, MPI_COMM_SELF, &copy);
    attr_delete_all(&proc, MPI_COMM_SELF, &set);
}

static void test_failing_callbacks(void)
{
    struct attr_set *set = NULL, *copy = NULL;
    int value = 2, other = 4, code = 4711;
    int good = create_keyval((any_function)MPI_COMM_DUP_FN, NULL),
        bad = create_keyval((any_function)copy_if_even, &code);
    attr_set(&proc, ATTR_COMM, MPI_COMM_SELF, &set, good, &value);
    attr_set(&proc, ATTR_COMM, MPI_COMM_SELF, &set, bad, &other);
    ndeleted = 0;
    EXPECT_EQ(attr_copy_all(&proc, MPI_COMM_SELF, set, &copy), 4711);
    EXPECT(copy == NULL);
    EXPECT_EQ(ndeleted, 1);
    refuse = 815;
    EXPECT_EQ(attr_delete(&proc, ATTR_COMM, MPI_COMM_SELF, &set, good), 815);
    EXPECT_EQ(attr_set(&proc, ATTR_COMM, MPI_COMM_SELF, &set, good, &other), 815);
    EXPECT_EQ(attr_delete_all(&proc, MPI_COMM_SELF, &set), 815);
    EXPECT(set != NULL);
    refuse = 0;
    EXPECT_EQ(attr_delete_all(&proc, MPI_COMM_SELF, &set), MPI_SUCCESS);
}

static void test_predefined_attributes(void)
{
    struct attr_set *set = NULL;
    void *value = NULL;
    bool found;
    EXPECT_EQ(attr_get(&proc, ATTR_COMM, NULL, MPI_TAG_UB, &value, &found), MPI_SUCCESS);
    EXPECT(found && *(int *)value >= (1 << 30) - 1);
    EXPECT_EQ(attr_get(&proc, ATTR_COMM, NULL, MPI_APPNUM, &value, &found), MPI_SUCCESS);
    EXPECT(!found);
    EXPECT_EQ(attr_get(&proc, ATTR_COMM, NULL, MPI_UNIVERSE_SIZE, &value, &found), MPI_SUCCESS);
    EXPECT(found && *(int *)value == 12);
    EXPECT_EQ(attr_set(&proc, ATTR_COMM, MPI_COMM_SELF, &set, MPI_TAG_UB, value), MPI_ERR_KEYVAL);
    EXPECT_EQ(attr_delete(&proc, ATTR_COMM, MPI_COMM_SELF, &set, MPI_HOST), MPI_ERR_KEYVAL);
}

static void test_invalid_keyvals(void)
{
    struct attr_set *set = NULL;
    int k = create_keyval((any_function)MPI_COMM_DUP_FN, NULL), copy = k, invalid = MPI_KEYVAL_INVALID;
    void *value;
    bool found;
    EXPECT_EQ(attr_get(&proc, ATTR_TYPE, NULL, k, &value, &found), MPI_ERR_KEYVAL);
    EXPECT_EQ(attr_set(&proc, ATTR_WIN, MPI_WIN_NULL, &set, k, NULL), MPI_ERR_KEYVAL);
    EXPECT_EQ(attr_keyval_free(&proc, ATTR_COMM, &invalid), MPI_ERR_KEYVAL);
    EXPECT_EQ(attr_keyval_free(&proc, ATTR_COMM, &k), MPI_SUCCESS);
    EXPECT_EQ(attr_keyval_free(&proc, ATTR_COMM, &copy), MPI_ERR_KEYVAL);
}

int main(void)
{
    attr_table_open(&proc);
    TEST_RUN(test_order_of_deletion);
    TEST_RUN(test_copies);
    TEST_RUN(test_failing_callbacks);
    TEST_RUN(test_predefined_attributes);
    TEST_RUN(test_invalid_keyvals);
    attr_table_close(&proc);
    return test_result();
}
