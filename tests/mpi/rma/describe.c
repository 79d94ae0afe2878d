/* describe.c: properties of windows: attributes, names, groups, hints, shared memory; the large-count
 * forms; many windows at once.
 *
 * ranks: 4 1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/windows.h"

static int deleted;

static int count_delete(MPI_Win win, int keyval, void *value, void *extra)
{
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

static void test_attributes(struct window *w)
{
    static const int flavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED,
                                  MPI_WIN_FLAVOR_DYNAMIC};
    void *base;
    MPI_Aint *size;
    static int seven = 7; /* attribute value, deleted with the window */
    int *unit, *flavor, *model, flag, keyval, *got;
    MPI_Win_get_attr(w->win, MPI_WIN_BASE, &base, &flag);
    EXPECT(flag && base == (w->flavor == DYNAMIC ? MPI_BOTTOM : w->memory));
    MPI_Win_get_attr(w->win, MPI_WIN_SIZE, &size, &flag);
    EXPECT_EQ(*size, w->flavor == DYNAMIC ? 0 : 1000);
    MPI_Win_get_attr(w->win, MPI_WIN_DISP_UNIT, &unit, &flag);
    EXPECT_EQ(*unit, 1);
    MPI_Win_get_attr(w->win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
    EXPECT_EQ(*flavor, flavors[w->flavor]);
    MPI_Win_get_attr(w->win, MPI_WIN_MODEL, &model, &flag);
    EXPECT_EQ(*model, MPI_WIN_UNIFIED);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, count_delete, &keyval, NULL);
    MPI_Win_get_attr(w->win, keyval, &got, &flag);
    EXPECT_EQ(flag, 0);
    MPI_Win_set_attr(w->win, keyval, &seven);
    MPI_Win_get_attr(w->win, keyval, &got, &flag);
    EXPECT(flag && got == &seven);
    MPI_Win_delete_attr(w->win, keyval);
    EXPECT_EQ(deleted, 7);
    MPI_Win_set_attr(w->win, keyval, &seven);
    MPI_Win_free_keyval(&keyval);
    MPI_Win_set_attr(w->win, keyval, &seven) /* MPI_KEYVAL_INVALID: passed to the handler set below */;
}

static void test_names(struct window *w)
{
    char name[MPI_MAX_OBJECT_NAME] = "?";
    int len = -1, same;
    MPI_Group mine, theirs;
    MPI_Win_get_name(w->win, name, &len);
    EXPECT(len == 0 && name[0] == '\0');
    char longer[2 * MPI_MAX_OBJECT_NAME];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    EXPECT_EQ(MPI_Win_set_name(w->win, longer), MPI_SUCCESS); /* the name is truncated */
    MPI_Win_get_name(w->win, name, &len);
    EXPECT_EQ(len, MPI_MAX_OBJECT_NAME - 1);
    MPI_Win_set_name(w->win, "a window");
    MPI_Win_get_name(w->win, name, &len);
    EXPECT(len == 8 && strcmp(name, "a window") == 0);
    MPI_Win_get_group(w->win, &mine);
    MPI_Comm_group(w->comm, &theirs);
    MPI_Group_compare(mine, theirs, &same);
    EXPECT_EQ(same, MPI_IDENT);
    MPI_Group_free(&mine);
    MPI_Group_free(&theirs);
}

static void test_hints(void)
{
    MPI_Info info, used;
    MPI_Win win;
    char value[64];
    int flag, len = sizeof(value);
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "true");
    MPI_Info_set(info, "same_disp_unit", "true");
    MPI_Info_set(info, "nobody_knows", "this");
    MPI_Win_create(NULL, 0, 1, info, MPI_COMM_WORLD, &win);
    MPI_Win_get_info(win, &used);
    MPI_Info_get_string(used, "no_locks", &len, value, &flag);
    EXPECT(flag && strcmp(value, "true") == 0);
    len = sizeof(value);
    MPI_Info_get_string(used, "accumulate_ordering", &len, value, &flag);
    EXPECT(flag && strcmp(value, "rar,raw,war,waw") == 0);
    len = sizeof(value);
    MPI_Info_get_string(used, "nobody_knows", &len, value, &flag);
    EXPECT(!flag);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    MPI_Info_free(&used);
    MPI_Info_free(&info);
    MPI_Win_free(&win);
}

/* Loads and stores directly in the memory of the other ranks, which is contiguous. */
static void test_shared(struct window *w)
{
    MPI_Aint size;
    int unit;
    char *base, *first;
    MPI_Win_shared_query(w->win, MPI_PROC_NULL, &size, &unit, &first);
    EXPECT(size == 1000 && unit == 1);
    MPI_Win_fence(0, w->win);
    w->memory[0] = (char)(w->rank + 1);
    MPI_Win_fence(0, w->win);
    for (int t = 0; t < w->size; t++) {
        MPI_Win_shared_query(w->win, t, &size, &unit, &base);
        EXPECT(w->flavor == ALLOCATED || base == first + 1000 * t);
        EXPECT_EQ(base[0], t + 1);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
}

static void test_large_counts(void)
{
    MPI_Win win;
    double *memory, one = 1, in = 0;
    MPI_Aint size, unit;
    MPI_Win_allocate_c(64, (MPI_Aint)sizeof(double), MPI_INFO_NULL, MPI_COMM_SELF, &memory, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put_c(&one, 1, MPI_DOUBLE, 0, 3, 1, MPI_DOUBLE, win);
    MPI_Accumulate_c(&one, 1, MPI_DOUBLE, 0, 3, 1, MPI_DOUBLE, MPI_SUM, win);
    MPI_Get_c(&in, 1, MPI_DOUBLE, 0, 3, 1, MPI_DOUBLE, win);
    MPI_Win_unlock(0, win);
    EXPECT(in == 2);
    MPI_Win_shared_query_c(win, 0, &size, &unit, &memory);
    EXPECT(size == 64 && unit == sizeof(double));
    MPI_Win_free(&win);
}

static void test_many_windows(void)
{
    enum { MANY = 60 };
    MPI_Win wins[MANY];
    int memory[MANY] = {0}, x = mpitest_rank;
    for (int i = 0; i < MANY; i++)
        MPI_Win_create(&memory[i], sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[i]);
    for (int i = 0; i < MANY; i++)
        MPI_Win_fence(MPI_MODE_NOPRECEDE, wins[i]);
    for (int i = 0; i < MANY; i++)
        MPI_Accumulate(&x, 1, MPI_INT, i % mpitest_size, 0, 1, MPI_INT, MPI_SUM, wins[i]);
    for (int i = 0; i < MANY; i++)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, wins[i]);
    for (int i = 0; i < MANY; i++) {
        EXPECT_EQ(memory[i], i % mpitest_size == mpitest_rank ? mpitest_size * (mpitest_size - 1) / 2 : 0);
        MPI_Win_free(&wins[i]);
    }
}

/* MPI_Win_shared_query of MPI_PROC_NULL returns the memory of the lowest rank with memory, on any node;
 * memory of another node has size 0. */
static void test_shared_query_of_proc_null(void)
{
    const int owner = mpitest_size > 1 ? 1 : 0;
    MPI_Aint size = -1, wanted = 0;
    int unit = -1, near;
    void *memory, *base = NULL;
    MPI_Win win;
    MPI_Comm node;
    MPI_Group all, here;
    MPI_Win_allocate(mpitest_rank >= owner ? 100 + mpitest_rank : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                     &memory, &win);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(node, &here);
    MPI_Group_translate_ranks(all, 1, &owner, here, &near);
    if (near != MPI_UNDEFINED)
        wanted = 100 + owner;
    EXPECT_EQ(MPI_Win_shared_query(win, MPI_PROC_NULL, &size, &unit, &base), MPI_SUCCESS);
    EXPECT(size == wanted || (size == 0 && mpitest_size == 1));
    EXPECT((base != NULL) == (size > 0));
    MPI_Group_free(&all);
    MPI_Group_free(&here);
    MPI_Comm_free(&node);
    MPI_Win_free(&win);
}

/* The sizes of all ranks together are 2^64 bytes: every rank gets an error. */
static void test_shared_too_large(void)
{
    MPI_Comm node;
    MPI_Win win = MPI_WIN_NULL;
    void *memory;
    int class = MPI_SUCCESS;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
    int rc = MPI_Win_allocate_shared((MPI_Aint)1 << 62, 1, MPI_INFO_NULL, node, &memory, &win);
    MPI_Error_class(rc, &class);
    EXPECT_EQ(class, MPI_ERR_NO_MEM);
    MPI_Comm_free(&node);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        struct window w;
        if (!window_open(&w, flavor, 1000))
            continue;
        MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
        deleted = 0;
        test_attributes(&w);
        test_names(&w);
        if (flavor == SHARED || (flavor == ALLOCATED && w.size == 1))
            test_shared(&w);
        window_close(&w);
        EXPECT_EQ(deleted, 14); /* freeing the window deletes its attributes */
    }
    test_hints();
    test_large_counts();
    test_shared_query_of_proc_null();
    test_shared_too_large();
    test_many_windows();
    return mpitest_end();
}
