/* rma.c: a member of a window dies while others wait in each kind of synchronisation: fence, lock (held by
 * the dead rank), flush, start, wait, and in a request. Every call returns the error. MPI_Win_free
 * succeeds when all living ranks call it.
 *
 * ranks: 11
 * nodes: 3
 * on nodes: SOFTIB_FABRIC=without=atomics
 * mpiexec: -enable-recovery
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

#define WORDS 20000

static MPI_Win win;
static int *memory, *mine;

static void create_window(void)
{
    EXPECT_CLASS(MPI_Win_allocate(WORDS * sizeof(int), sizeof(int), MPI_INFO_NULL, now, &memory, &win),
                 MPI_SUCCESS);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Barrier(now);
}

static void free_window(void)
{
    EXPECT_CLASS(MPI_Win_free(&win), MPI_SUCCESS);
    EXPECT(win == MPI_WIN_NULL);
}

static void test_fence(void)
{
    create_window();
    MPI_Win_fence(0, win);
    MPI_Put(mine, WORDS, MPI_INT, (rank + 1) % victim, 0, WORDS, MPI_INT, win);
    if (rank == victim)
        kill_this_rank();
    EXPECT_DEATH(MPI_Win_fence(0, win));
    EXPECT_DEATH(MPI_Win_fence(0, win));
    free_window();
}

/* All ranks request a lock on rank 0's window that the dead rank holds. */
static void test_lock(void)
{
    int x = 0;
    create_window();
    if (rank == victim) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(mine, WORDS, MPI_INT, 0, 0, WORDS, MPI_INT, win);
        MPI_Win_flush(0, win);
        for (int i = 0; i < victim; i++)
            MPI_Send(&x, 1, MPI_INT, i, 0, now);
        kill_this_rank();
    }
    MPI_Recv(&x, 1, MPI_INT, victim, 0, now, MPI_STATUS_IGNORE);
    EXPECT_DEATH(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    EXPECT_DEATH(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    EXPECT_DEATH(MPI_Win_lock_all(0, win));
    free_window();
}

/* The dead rank holds the lock on rank 0's window. Within MPI_Win_lock_all the first operation on rank 0
 * requests that lock and fails, and so do the following operations. */
static void test_lock_all_first_access(void)
{
    int x = 0;
    create_window();
    if (rank == victim) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        for (int i = 1; i < victim; i++)
            MPI_Sendrecv(&x, 1, MPI_INT, i, 0, &x, 1, MPI_INT, i, 0, now, MPI_STATUS_IGNORE);
        MPI_Recv(&x, 1, MPI_INT, 0, 0, now, MPI_STATUS_IGNORE);
        kill_this_rank();
    }
    if (rank > 0) {
        MPI_Win_lock_all(0, win);
        MPI_Sendrecv(&x, 1, MPI_INT, victim, 0, &x, 1, MPI_INT, victim, 0, now, MPI_STATUS_IGNORE);
        for (int i = 0; i < 3; i++)
            EXPECT_DEATH(MPI_Get(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
        MPI_Send(&x, 1, MPI_INT, 0, 1, now);
        MPI_Win_unlock_all(win);
    }
    if (rank == 0) {
        MPI_Send(&x, 1, MPI_INT, victim, 0, now);
        for (int i = 1; i < victim; i++)
            EXPECT_CLASS(MPI_Recv(&x, 1, MPI_INT, i, 1, now, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
    free_window();
}

/* Operations between living ranks still work until the epoch ends. */
static void test_flush(void)
{
    int got = -1, rc, next = (rank + 1) % victim;
    create_window();
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    memory[0] = rank;
    MPI_Win_sync(win);
    MPI_Barrier(now);
    if (rank == victim)
        kill_this_rank();
    rc = MPI_Put(mine, WORDS, MPI_INT, victim, 0, WORDS, MPI_INT, win);
    int flushed = MPI_Win_flush(victim, win);
    if (rc || flushed) /* succeeds on mapped memory, which remains valid after its owner's death */
        EXPECT_DEATH(rc ? rc : flushed);
    EXPECT_DEATH(MPI_Recv(&got, 1, MPI_INT, victim, 0, now, MPI_STATUS_IGNORE));
    EXPECT_DEATH(MPI_Put(mine, 1, MPI_INT, victim, 0, 1, MPI_INT, win));
    EXPECT_CLASS(MPI_Get(&got, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_SUCCESS);
    EXPECT_CLASS(MPI_Win_flush(next, win), MPI_SUCCESS);
    EXPECT_EQ(got, next);
    MPI_Win_unlock_all(win);
    free_window();
}

static MPI_Group make_group(int r)
{
    MPI_Group all, one;
    MPI_Comm_group(now, &all);
    MPI_Group_incl(all, 1, &r, &one);
    MPI_Group_free(&all);
    return one;
}

static void test_start(void)
{
    create_window();
    if (rank == victim)
        kill_this_rank();
    MPI_Group to = make_group(victim);
    EXPECT_DEATH(MPI_Win_start(to, 0, win));
    MPI_Group_free(&to);
    free_window();
}

static void test_wait(void)
{
    create_window();
    if (rank == victim)
        kill_this_rank();
    MPI_Group from = make_group(victim);
    int rc = MPI_Win_post(from, 0, win);
    rc = rc ? rc : MPI_Win_wait(win);
    EXPECT_DEATH(rc);
    MPI_Group_free(&from);
    free_window();
}

static int accumulate_and_wait(void)
{
    MPI_Request r = MPI_REQUEST_NULL;
    int rc =
        MPI_Rget_accumulate(mine, 1, MPI_INT, mine + 1, 1, MPI_INT, victim, 0, 1, MPI_INT, MPI_SUM, win, &r);
    return rc ? rc : MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static int win_errors;

static void count_win_error(MPI_Win *w, int *code, ...)
{
    win_errors += *w == win;
}

/* The victim is stopped, and killed when every rank has an unfinished request to it: MPI_Wait fails, and the
 * window's error handler is called. */
static void test_pending_request(void)
{
    long pid = getpid();
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Errhandler h;
    create_window();
    MPI_Win_create_errhandler(count_win_error, &h);
    MPI_Win_set_errhandler(win, h);
    MPI_Errhandler_free(&h);
    MPI_Bcast(&pid, 1, MPI_LONG, victim, now);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    /* Before the victim is stopped: the first access may need a reply of the victim. */
    MPI_Get(mine + 1, 1, MPI_INT, victim, 0, 1, MPI_INT, win);
    MPI_Win_flush(victim, win);
    EXPECT_CLASS(accumulate_and_wait(), MPI_SUCCESS); /* opens the connection before the victim is stopped */
    MPI_Barrier(now);
    if (rank == victim) {
        printf("rank %d of %d dies\n", rank, size);
        fflush(stdout);
        raise(SIGSTOP);
    }
    EXPECT_CLASS(
        MPI_Rget_accumulate(mine, 1, MPI_INT, mine + 1, 1, MPI_INT, victim, 0, 1, MPI_INT, MPI_SUM, win, &r),
        MPI_SUCCESS);
    for (int from = 1; rank == 0 && from < victim; from++)
        MPI_Recv(NULL, 0, MPI_INT, from, 1, now, MPI_STATUS_IGNORE);
    if (rank == 0)
        kill((pid_t)pid, SIGKILL);
    else
        MPI_Send(NULL, 0, MPI_INT, 0, 1, now);
    win_errors = 0;
    int rc = MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (rc) /* on mapped memory the request succeeds */
        EXPECT_DEATH(rc);
    EXPECT_EQ(win_errors, rc != MPI_SUCCESS);
    EXPECT_DEATH(MPI_Recv(NULL, 0, MPI_INT, victim, 0, now, MPI_STATUS_IGNORE));
    MPI_Win_unlock_all(win);
    free_window();
}

static void test_request(void)
{
    int x;
    create_window();
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Barrier(now);
    if (rank == victim)
        kill_this_rank();
    int rc =
        accumulate_and_wait(); /* succeeds on mapped memory, which remains valid after its owner's death */
    if (rc)
        EXPECT_DEATH(rc);
    EXPECT_DEATH(MPI_Recv(&x, 1, MPI_INT, victim, 0, now, MPI_STATUS_IGNORE));
    EXPECT_DEATH(accumulate_and_wait());
    MPI_Win_unlock_all(win);
    free_window();
}

/* Tests that a window of the living ranks works. */
static void test_new_window(void)
{
    int x = rank;
    if (rank == victim)
        kill_this_rank();
    EXPECT_DEATH(MPI_Recv(&x, 1, MPI_INT, victim, 0, now, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
    static void (*const phases[])(void) = {test_fence,           test_lock,    test_lock_all_first_access,
                                           test_flush,           test_start,   test_wait,
                                           test_pending_request, test_request, test_new_window};
    mpitest_begin(&argc, &argv);
    mine = calloc(WORDS, sizeof(int));
    run_phases(phases, sizeof(phases) / sizeof(phases[0]));
    create_window();
    EXPECT_CLASS(MPI_Win_fence(0, win), MPI_SUCCESS);
    EXPECT_CLASS(MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win), MPI_SUCCESS);
    EXPECT_CLASS(MPI_Win_fence(0, win), MPI_SUCCESS);
    EXPECT_EQ(memory[0], (rank + size - 1) % size);
    EXPECT_CLASS(MPI_Win_free(&win), MPI_SUCCESS);
    free(mine);
    return finalize_and_get_status();
}
