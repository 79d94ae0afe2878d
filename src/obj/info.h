/* info.h: info objects: ordered (key, value) strings. They need no struct proc, since the standard allows
 * them before MPI_Init; only MPI_INFO_ENV belongs to a struct proc.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_INFO_H
#define FP_OBJ_INFO_H

#include <mpi.h>

#include "base/err.h"
#include "base/objmem.h"
#include "obj/proc.h"

struct info_pair {
    char *key, *value;
};

struct info {
    struct object obj; /* MAGIC_INFO; first */
    int count, capacity;
    struct info_pair *pairs; /* in the order in which keys were first set */
    uint32_t handle;         /* handle value of MPI_INFO_ENV, else 0 */
};

/* Resolves a handle; NULL for MPI_INFO_NULL and for anything that is not an info object. p may be NULL before
 * MPI_Init. */
static inline struct info *info_from(struct proc *p, MPI_Info handle)
{
    if (handle_is_predefined(handle))
        return handle == MPI_INFO_ENV && p ? p->info_env : NULL;
    struct info *i = (struct info *)handle;
    return object_has_magic(i, MAGIC_INFO) ? i : NULL;
}

static inline MPI_Info info_handle(const struct info *i)
{
    return i->handle ? (MPI_Info)(uintptr_t)i->handle : (MPI_Info)i;
}

int info_create(struct info **out);
void info_release(struct info *i); /* NULL is allowed */
int info_set(struct info *i, const char *key, const char *value);
int info_delete(struct info *i, const char *key); /* returns MPI_ERR_INFO_NOKEY for an unknown key */
int info_copy(const struct info *from, struct info **out);

/* Returns the value of the key, or NULL. */
const char *info_get(const struct info *i, const char *key);

/* Reads a boolean key: true only for "true" (any case); `otherwise` if the key is not set or i is NULL. */
bool info_get_bool(const struct info *i, const char *key, bool otherwise);

/* Creates the contents of MPI_INFO_ENV (MPI-5.0, 11.2.1). argc and argv may be 0 and NULL. */
int info_create_env(int argc, char **argv, struct info **out);

#endif
