/* win.c: making, describing and freeing windows, over src/rma.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/win.h"

#include <string.h>

#include "api/check.h"
#include "api/enter.h"
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

static int win_make_checked(struct comm *comm, int flavor, void *base, MPI_Aint size, MPI_Aint unit,
                            struct info *info, struct win **out)
{
    int rc = check_args(comm, base, size, unit, flavor == MPI_WIN_FLAVOR_CREATE);
    return rc ? rc : win_make(comm, flavor, base, size, unit, info, out);
}

int impl_Win_create(void *base, MPI_Aint size, MPI_Aint disp_unit, struct info *info, struct comm *comm,
                    MPI_Win *win)
{
    struct win *w;
    int rc = win_make_checked(comm, MPI_WIN_FLAVOR_CREATE, base, size, disp_unit, info, &w);
    if (!rc)
        *win = win_handle(w);
    return rc;
}

static int make_with_memory(struct comm *comm, int flavor, MPI_Aint size, MPI_Aint unit, struct info *info,
                            void *baseptr, MPI_Win *win)
{
    struct win *w;
    int rc = win_make_checked(comm, flavor, NULL, size, unit, info, &w);
    if (rc)
        return rc;
    memcpy(baseptr, &w->memory, sizeof(w->memory));
    *win = win_handle(w);
    return MPI_SUCCESS;
}

int impl_Win_allocate(MPI_Aint size, MPI_Aint disp_unit, struct info *info, struct comm *comm, void *baseptr,
                      MPI_Win *win)
{
    return make_with_memory(comm, MPI_WIN_FLAVOR_ALLOCATE, size, disp_unit, info, baseptr, win);
}

int impl_Win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, struct info *info, struct comm *comm,
                             void *baseptr, MPI_Win *win)
{
    return make_with_memory(comm, MPI_WIN_FLAVOR_SHARED, size, disp_unit, info, baseptr, win);
}

int impl_Win_create_dynamic(struct info *info, struct comm *comm, MPI_Win *win)
{
    struct win *w;
    int rc = win_make_checked(comm, MPI_WIN_FLAVOR_DYNAMIC, MPI_BOTTOM, 0, 1, info, &w);
    if (!rc)
        *win = win_handle(w);
    return rc;
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

int impl_Win_detach(struct win *win, const void *base)
{
    return win_detach(win, base);
}

int impl_Win_shared_query(struct win *win, int rank, MPI_Aint *size, MPI_Aint *disp_unit, void *baseptr)
{
    void *base;
    int rc = win_shared_query(win, rank, size, disp_unit, &base);
    if (!rc)
        memcpy(baseptr, &base, sizeof(base));
    return rc;
}

int impl_Win_get_group(struct win *win, MPI_Group *group)
{
    *group = group_handle(group_retain(win->comm->group));
    return MPI_SUCCESS;
}

int impl_Win_set_info(struct win *win, struct info *info)
{
    return win_hints_apply(win, info);
}

int impl_Win_get_info(struct win *win, MPI_Info *info_used)
{
    struct info *used;
    int rc = win_hints_used(win, &used);
    if (!rc)
        *info_used = info_handle(used);
    return rc;
}
