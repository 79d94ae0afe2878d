/* handle.h: converts the user's handles to objects and back. Predefined communicators and groups belong to
 * the process; datatypes and operators resolve in src/dt.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_HANDLE_H
#define FP_OBJ_HANDLE_H

#include "dt/dtype.h"
#include "dt/op.h"
#include "obj/comm.h"
#include "obj/group.h"
#include "obj/proc.h"
#include "p2p/request.h"

static inline struct comm *comm_from(struct proc *p, MPI_Comm handle)
{
    if (likely(handle == MPI_COMM_WORLD))
        return p->world;
    if (handle_is_predefined(handle))
        return handle == MPI_COMM_SELF ? p->self : NULL;
    struct comm *c = (struct comm *)handle;
    return object_has_magic(c, MAGIC_COMM) ? c : NULL;
}

static inline MPI_Comm comm_handle(const struct comm *c)
{
    return c->handle ? (MPI_Comm)(uintptr_t)c->handle : (MPI_Comm)c;
}

static inline struct group *group_from(struct proc *p, MPI_Group handle)
{
    if (handle_is_predefined(handle))
        return handle == MPI_GROUP_EMPTY ? p->group_empty : NULL;
    struct group *g = (struct group *)handle;
    return object_has_magic(g, MAGIC_GROUP) ? g : NULL;
}

static inline MPI_Group group_handle(const struct group *g)
{
    return g->handle ? (MPI_Group)(uintptr_t)g->handle : (MPI_Group)g;
}

/* info_from, errhandler_from and session_from are in their own headers (obj/info.h, obj/errhandler.h,
 * obj/session.h). */

#endif
