/* enter.h: how a call into the library begins and ends: the lock when several threads may call, and
 * conversion of results for the bindings that return int.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_ENTER_H
#define FP_API_ENTER_H

#include <limits.h>

#include "obj/handle.h"

static inline void api_enter(struct proc *p)
{
    proc_lock(p);
}

static inline void api_leave(struct proc *p)
{
    proc_unlock(p);
}

/* Enters a call that is permitted before MPI_Init and after MPI_Finalize, when there is no process to lock. */
static inline void api_enter_any(struct proc *p)
{
    if (p)
        proc_lock(p);
}

static inline void api_leave_any(struct proc *p)
{
    if (p)
        proc_unlock(p);
}

/* Enclose every MPI_T call (tool_life.c): take and release the lock of MPI_T. api_enter_tool() returns
 * MPI_T_ERR_NOT_INITIALIZED, without taking the lock, before MPI_T_init_thread and after MPI_T_finalize. */
int api_enter_tool(void);
void api_leave_tool(void);

static inline bool api_checks(const struct proc *p)
{
    return !p || p->check_args;
}

/* Converts a size or count for a function with an int result: MPI_UNDEFINED if it does not fit (MPI-5.0, 5.1.5 and
 * others). */
static inline int api_count_to_int(MPI_Count value)
{
    return value > INT_MAX || value < INT_MIN ? MPI_UNDEFINED : (int)value;
}

/* win_from() and file_from() recognise a handle by the magic number of the object alone. */
static inline struct win *win_from(MPI_Win handle)
{
    return !handle_is_predefined(handle) && object_has_magic(handle, MAGIC_WIN) ? (struct win *)handle : NULL;
}

static inline struct file *file_from(MPI_File handle)
{
    return !handle_is_predefined(handle) && object_has_magic(handle, MAGIC_FILE) ? (struct file *)handle
                                                                                 : NULL;
}

#endif
