/* win.c: making, describing, freeing and synchronising windows, over src/rma.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/win.h"

#include <string.h>

#include "api/check.h"
#include "api/enter.h"
#include "api/forward.h"
#include "impl.h"

static int check_args(const struct comm *comm, const void *base, MPI_Aint size, MPI_Aint disp_unit,
                      bool given)
{
    if (comm->remote)
        return err_set(MPI_ERR_COMM, "comm is an intercommunicator; windows need an intracommunicator");
    if (size < 0)
        return err_set(MPI_ERR_SIZE, "size is %lld; it must not be negative", (long long)size);
    if (disp_unit <= 0)
        return err_set(MPI_ERR_DISP, "disp_unit is %lld; it must be positive", (long long)disp_unit);
    if (given && !base && size > 0)
        return err_set(MPI_ERR_BASE, "base is a null pointer, but size is %lld", (long long)size);
    return MPI_SUCCESS;
}

int win_make_checked(struct comm *comm, int flavor, void *base, MPI_Aint size, MPI_Aint unit,
                     struct info *info, struct win **out)
{
    int rc = check_args(comm, base, size, unit, flavor == MPI_WIN_FLAVOR_CREATE);
    return rc ? rc : win_make(comm, flavor, base, size, unit, info, out);
}

int win_return_handle(int rc, struct win *made, void *baseptr, MPI_Win *out)
{
    if (rc)
        return rc;
    if (baseptr)
        memcpy(baseptr, &made->memory, sizeof(made->memory));
    *out = win_handle(made);
    return MPI_SUCCESS;
}

int impl_Win_free(MPI_Win *win)
{
    struct win *w = win_from(*win);
    if (!w)
        return bad_handle(HANDLE_WIN, "win", *win);
    bool gone;
    int rc = win_free(w, &gone);
    if (gone)
        *win = MPI_WIN_NULL;
    return rc;
}

int impl_Win_attach(struct win *win, void *base, MPI_Aint size)
{
    if (size < 0)
        return err_set(MPI_ERR_SIZE, "size is %lld; it must not be negative", (long long)size);
    return win_attach(win, base, size);
}

int impl_Win_shared_query(struct win *win, int rank, MPI_Aint *size, MPI_Aint *disp_unit, void *baseptr)
{
    void *base;
    int rc = win_shared_query(win, rank, size, disp_unit, &base);
    if (!rc)
        memcpy(baseptr, &base, sizeof(base));
    return rc;
}

int impl_Win_test(struct win *win, int *flag)
{
    int rc = win_test(win, flag);
    if (!rc && !*flag)
        api_yield_after_failed_test(the_proc);
    return rc;
}

int impl_Win_sync(struct win *win)
{
    int rc = win_sync(win);
    if (!rc)
        api_yield_after_failed_test(the_proc);
    return rc;
}
