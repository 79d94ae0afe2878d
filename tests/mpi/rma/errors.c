/* errors.c: invalid epochs, ranks, ranges, types and operators return distinct errors, call the window's
 * error handler with the window, and leave the window usable.
 *
 * ranks: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/windows.h"

static int calls;
static MPI_Win error_window;

static void record_error(MPI_Win *win, int *code, ...)
{
    calls++;
    error_window = *win;
}

static void expect_error(int rc, int class, MPI_Win win, const char *words, int line)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int got = MPI_SUCCESS, len;
    MPI_Error_class(rc, &got);
    MPI_Error_string(rc, text, &len);
    if (got != class || calls != 1 || error_window != win || (words && !strstr(text, words))) {
        mpitest_failures++;
        fprintf(stderr,
                "rank %d: line %d: error class %d, expected %d; %d calls of the handler, expected 1; %s\n",
                mpitest_rank, line, got, class, calls, text);
    }
    calls = 0;
}
#define EXPECT_ERROR(call, class)       expect_error(call, class, w, NULL, __LINE__)
#define EXPECT_TEXT(call, class, words) expect_error(call, class, w, words, __LINE__)

/* Accumulates no elements, for which every operator is valid with every type. */
static void test_empty_accumulates(MPI_Win w)
{
    char x = 0, old = 1;
    MPI_Win_fence(0, w);
    EXPECT_EQ(MPI_Accumulate(&x, 0, MPI_BYTE, 0, 0, 0, MPI_BYTE, MPI_SUM, w), MPI_SUCCESS);
    EXPECT_EQ(MPI_Get_accumulate(&x, 0, MPI_BYTE, &old, 0, MPI_BYTE, 0, 0, 0, MPI_BYTE, MPI_SUM, w),
              MPI_SUCCESS);
    EXPECT_ERROR(MPI_Accumulate(&x, 1, MPI_BYTE, 0, 0, 1, MPI_BYTE, MPI_SUM, w), MPI_ERR_OP);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
}

static void test_epochs(MPI_Win w)
{
    int x = 0;
    MPI_Group all, me;
    EXPECT_ERROR(MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_unlock(0, w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_unlock_all(w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_complete(w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_wait(w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_flush(0, w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_flush_all(w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_lock(99, 0, 0, w), MPI_ERR_LOCKTYPE);
    EXPECT_TEXT(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, w), MPI_ERR_ASSERT, "MPI_Win_lock takes");
    EXPECT_TEXT(MPI_Win_lock_all(-1, w), MPI_ERR_ASSERT, "MPI_Win_lock_all takes");
    MPI_Win_lock(MPI_LOCK_SHARED, mpitest_rank, 0, w);
    EXPECT_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, mpitest_rank, 0, w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_fence(0, w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Put(&x, 1, MPI_INT, 1 - mpitest_rank, 0, 1, MPI_INT, w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_free(&w), MPI_ERR_RMA_SYNC);
    MPI_Win_unlock(mpitest_rank, w);
    MPI_Win_get_group(w, &all);
    MPI_Group_incl(all, 1, &mpitest_rank, &me);
    MPI_Win_post(me, 0, w);
    MPI_Win_start(me, 0, w);
    EXPECT_ERROR(MPI_Win_post(me, 0, w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_start(me, 0, w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_lock_all(0, w), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Get(&x, 1, MPI_INT, 1 - mpitest_rank, 0, 1, MPI_INT, w), MPI_ERR_RMA_SYNC);
    MPI_Win_complete(w);
    MPI_Win_wait(w);
    MPI_Group_free(&all);
    MPI_Group_free(&me);
}

static void test_arguments(MPI_Win w)
{
    int x = 0, y = 0;
    MPI_Datatype pair, raw;
    MPI_Op mine;
    MPI_Win_set_name(w, "the ledger");
    MPI_Win_fence(0, w);
    EXPECT_TEXT(MPI_Put(&x, 1, MPI_INT, 2, 0, 1, MPI_INT, w), MPI_ERR_RANK, "rank 2");
    EXPECT_TEXT(MPI_Put(&x, 1, MPI_INT, 1, 10, 1, MPI_INT, w), MPI_ERR_RMA_RANGE, "the ledger");
    EXPECT_TEXT(MPI_Get(&x, 1, MPI_INT, 1, 10, 1, MPI_INT, w), MPI_ERR_RMA_RANGE, "40 bytes");
    EXPECT_ERROR(MPI_Put(&x, 1, MPI_INT, 1, -1, 1, MPI_INT, w), MPI_ERR_DISP);
    EXPECT_ERROR(MPI_Put(&x, 1, MPI_INT, 1, 0, 2, MPI_INT, w), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Get(&x, -1, MPI_INT, 1, 0, 1, MPI_INT, w), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Put(NULL, 1, MPI_INT, 1, 0, 1, MPI_INT, w), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Accumulate(&x, 1, MPI_FLOAT, 1, 0, 1, MPI_FLOAT, MPI_BAND, w), MPI_ERR_OP);
    EXPECT_ERROR(MPI_Accumulate(&x, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_NO_OP, w), MPI_ERR_OP);
    MPI_Op_create((MPI_User_function *)(void *)record_error, 1, &mine);
    EXPECT_ERROR(MPI_Accumulate(&x, 1, MPI_INT, 1, 0, 1, MPI_INT, mine, w), MPI_ERR_OP);
    MPI_Op_free(&mine);
    MPI_Type_contiguous(2, MPI_INT, &raw);
    EXPECT_ERROR(MPI_Put(&x, 1, raw, 1, 0, 1, raw, w), MPI_ERR_TYPE);
    MPI_Type_free(&raw);
    MPI_Type_contiguous(1, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    EXPECT_ERROR(MPI_Fetch_and_op(&x, &y, pair, 1, 0, MPI_SUM, w), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_Compare_and_swap(&x, &x, &y, MPI_DOUBLE, 1, 0, w), MPI_ERR_TYPE);
    MPI_Type_free(&pair);
    EXPECT_ERROR(MPI_Win_fence(1 << 20, w), MPI_ERR_ASSERT);
    EXPECT_ERROR(MPI_Win_attach(w, &x, 4), MPI_ERR_RMA_FLAVOR);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
}

/* The target detects memory that is not attached, and the waiting call reports the error. */
static void test_unattached_memory(void)
{
    MPI_Win w;
    MPI_Errhandler handler;
    static int here[4], there[4];
    MPI_Aint address;
    int x = 5, other = 1 - mpitest_rank;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_create_errhandler((MPI_Win_errhandler_function *)record_error, &handler);
    MPI_Win_set_errhandler(w, handler);
    MPI_Win_attach(w, here, sizeof(here));
    EXPECT_ERROR(MPI_Win_attach(w, here + 1, 4), MPI_ERR_RMA_ATTACH);
    EXPECT_ERROR(MPI_Win_detach(w, there), MPI_ERR_RMA_ATTACH);
    MPI_Get_address(there, &address);
    MPI_Sendrecv_replace(&address, 1, MPI_AINT, other, 0, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_lock(MPI_LOCK_SHARED, other, 0, w);
    MPI_Put(&x, 1, MPI_INT, other, address, 1, MPI_INT, w);
    EXPECT_TEXT(MPI_Win_flush(other, w), MPI_ERR_RMA_RANGE, "not attached");
    MPI_Win_unlock(other, w);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(there[0], 0);
    MPI_Win_free(&w);
    MPI_Errhandler_free(&handler);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Win w;
    MPI_Errhandler handler;
    int memory[10] = {0}, x;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Win_create(memory, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w), MPI_ERR_SIZE);
    EXPECT_EQ(MPI_Win_create(memory, 4, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &w), MPI_ERR_DISP);
    EXPECT_EQ(MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL), MPI_ERR_WIN);
    MPI_Win_create(memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_create_errhandler((MPI_Win_errhandler_function *)record_error, &handler);
    MPI_Win_set_errhandler(w, handler);
    test_empty_accumulates(w);
    test_epochs(w);
    test_arguments(w);
    MPI_Win_free(&w);
    MPI_Errhandler_free(&handler);
    test_unattached_memory();
    return mpitest_end();
}
