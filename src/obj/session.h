/* session.h: MPI sessions: handles with their own error handler, from which a program derives process sets,
 * groups and communicators.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_SESSION_H
#define FP_OBJ_SESSION_H

#include <mpi.h>

#include "base/objmem.h"
#include "obj/proc.h"

struct errhandler;
struct group;
struct info;

struct session {
    struct object obj; /* MAGIC_SESSION; first */
    struct list link;  /* on proc->sessions */
    struct proc *proc;
    struct errhandler *errhandler;
    struct info *info;        /* returned by MPI_Session_get_info */
    struct bsend_pool *bsend; /* buffer attached to this session */
    int thread_level;
};

/* Resolves a handle; NULL for MPI_SESSION_NULL and for anything that is not a session. */
static inline struct session *session_from(MPI_Session handle)
{
    if (handle_is_predefined(handle))
        return NULL;
    struct session *s = (struct session *)handle;
    return object_has_magic(s, MAGIC_SESSION) ? s : NULL;
}

static inline MPI_Session session_handle(struct session *s)
{
    return (MPI_Session)s;
}

int session_open(struct proc *p, const struct info *info, struct errhandler *errhandler,
                 struct session **out);
void session_close(struct session *s);

/* The process sets. Their names are compared without regard to case. */
enum { PSET_WORLD, PSET_SELF, PSET_COUNT };
const char *pset_name(int index);
int pset_find(const char *name); /* returns PSET_COUNT for an unknown name */
/* returns MPI_ERR_ARG for an unknown name */
int pset_group(struct proc *p, const char *name, struct group **out);

#endif
