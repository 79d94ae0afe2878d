/* attr.h: attributes cached on communicators, datatypes and windows: keyvals, values, and when the user's
 * copy and delete functions run. User functions run without the big lock, since they may call MPI.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_ATTR_H
#define FP_OBJ_ATTR_H

#include <mpi.h>

#include "base/err.h"

struct attr_set;
struct proc;

enum attr_kind { ATTR_COMM, ATTR_TYPE, ATTR_WIN, ATTR_KINDS };

/* Creates a keyval. copy and del have the types of the kind's callbacks, or are the ABI's small integers
 * (MPI_COMM_NULL_COPY_FN = 0, MPI_COMM_DUP_FN = 1, ...), which are never called. */
int attr_keyval_create(struct proc *p, enum attr_kind kind, void (*copy)(void), void (*del)(void),
                       void *extra, int *keyval);
int attr_keyval_free(struct proc *p, enum attr_kind kind, int *keyval);

/* `handle` is the user's handle of the object that owns *set (passed to the delete function). *set is NULL
 * until the first attribute. */
int attr_set(struct proc *p, enum attr_kind kind, void *handle, struct attr_set **set, int keyval,
             void *value);
int attr_get(struct proc *p, enum attr_kind kind, struct attr_set *set, int keyval, void **value,
             bool *found);
int attr_delete(struct proc *p, enum attr_kind kind, void *handle, struct attr_set **set, int keyval);

/* For dup: runs the copy functions of `from` (whose owner is `handle`). On an error the copied attributes
 * are deleted, *out stays NULL and the user function's code is returned. `from` may be NULL. */
int attr_copy_all(struct proc *p, void *handle, struct attr_set *from, struct attr_set **out);

/* For free: runs the delete functions, latest attribute first (MPI-5.0, 11.2.4 requires this for
 * MPI_COMM_SELF), and frees the set. On an error the attributes not yet deleted stay and the object must
 * stay too. */
int attr_delete_all(struct proc *p, void *handle, struct attr_set **set);

#endif
