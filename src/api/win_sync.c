/* win_sync.c: the synchronisation calls of windows, over src/rma.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/p2p.h"
#include "impl.h"
#include "rma/win.h"

int impl_Win_test(struct win *win, int *flag)
{
    int rc = win_test(win, flag);
    if (!rc && !*flag)
        api_yield_after_failed_test(the_proc);
    return rc;
}

int impl_Win_flush(int rank, struct win *win)
{
    return win_flush(win, rank, false);
}

int impl_Win_flush_local(int rank, struct win *win)
{
    return win_flush(win, rank, true);
}

int impl_Win_flush_all(struct win *win)
{
    return win_flush_all(win, false);
}

int impl_Win_flush_local_all(struct win *win)
{
    return win_flush_all(win, true);
}

int impl_Win_sync(struct win *win)
{
    int rc = win_sync(win);
    if (!rc)
        api_yield_after_failed_test(the_proc);
    return rc;
}
