/* watch.c: FISHPLATE_DEBUG=rma reports operations of one epoch that access the same bytes, of one origin
 * and of several, and reports no others.
 *
 * ranks: 3
 * env: FISHPLATE_DEBUG=rma
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rma/windows.h"

static int saved = -1, kept = -1;

static void capture_stderr(void)
{
    fflush(stderr);
    kept = memfd_create("stderr", 0);
    saved = dup(2);
    dup2(kept, 2);
}

/* Returns the number of reports of all ranks that contain these words since capture_stderr. */
static int count_reports_with(const char *words)
{
    static char text[65536];
    int count = 0, total = 0;
    fflush(stderr);
    dup2(saved, 2);
    ssize_t len = pread(kept, text, sizeof(text) - 1, 0);
    text[len > 0 ? len : 0] = '\0';
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        count++;
    close(saved);
    close(kept);
    MPI_Allreduce(&count, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    for (int flavor = CREATED; flavor <= ALLOCATED; flavor++) {
        struct window w;
        int x[4] = {0};
        window_open(&w, flavor, 4096);
        MPI_Win_set_name(w.win, "watched");

        capture_stderr(); /* conflict: one origin, under a lock */
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win);
        MPI_Put(x, 4, MPI_INT, 0, 0, 4, MPI_INT, w.win);
        MPI_Get(x, 1, MPI_INT, 0, 12, 1, MPI_INT, w.win);
        MPI_Win_unlock(0, w.win);
        EXPECT_EQ(count_reports_with("window watched: the put by rank"), w.size);

        capture_stderr(); /* conflict: two origins between fences */
        MPI_Win_fence(0, w.win);
        if (w.rank > 0)
            MPI_Put(x, 1, MPI_INT, 0, 100, 1, MPI_INT, w.win);
        MPI_Win_fence(0, w.win);
        EXPECT_EQ(count_reports_with("touch the same bytes of rank 0"), 1);

        capture_stderr(); /* no conflicts: adjacent bytes, a fence or flush in between, accumulates, reads */
        if (w.rank > 0)
            MPI_Put(x, 1, MPI_INT, 0, 4 * w.rank, 1, MPI_INT, w.win);
        MPI_Win_fence(0, w.win);
        if (w.rank > 0)
            MPI_Accumulate(x, 1, MPI_INT, 0, 4, 1, MPI_INT, MPI_SUM, w.win);
        MPI_Win_fence(0, w.win);
        MPI_Get(x, 4, MPI_INT, 0, 0, 4, MPI_INT, w.win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win);
        MPI_Put(x, 4, MPI_INT, 0, 0, 4, MPI_INT, w.win);
        MPI_Win_flush(0, w.win);
        MPI_Get(x, 4, MPI_INT, 0, 0, 4, MPI_INT, w.win);
        MPI_Win_flush_local(0, w.win); /* completes the get */
        MPI_Put(x, 4, MPI_INT, 0, 0, 4, MPI_INT, w.win);
        MPI_Win_flush(0, w.win);
        MPI_Request request;
        MPI_Rget(x, 4, MPI_INT, 0, 0, 4, MPI_INT, w.win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Put(x, 4, MPI_INT, 0, 0, 4, MPI_INT, w.win);
        MPI_Win_unlock(0, w.win);
        EXPECT_EQ(count_reports_with("touch the same bytes"), 0);
        window_close(&w);
    }
    return mpitest_end();
}
