/* check.h: the checks of arguments that the generated wrappers make, inline, and the rarely called functions
 * that describe a wrong argument. A description starts with the parameter's name as the standard spells it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_CHECK_H
#define FP_API_CHECK_H

#include "base/ivec.h"
#include "obj/handle.h"

/* Kinds of handles; indexes of the table `handles` in check.c. */
enum handle_kind {
    HANDLE_COMM,
    HANDLE_GROUP,
    HANDLE_DTYPE,
    HANDLE_OP,
    HANDLE_INFO,
    HANDLE_ERRHANDLER,
    HANDLE_SESSION,
    HANDLE_REQUEST,
    HANDLE_WIN,
    HANDLE_FILE,
};

static inline bool api_is_valid_dest(const struct comm *c, int rank)
{
    return (unsigned)rank < (unsigned)comm_peers(c) || rank == MPI_PROC_NULL;
}

static inline bool api_is_valid_source(const struct comm *c, int rank)
{
    return (unsigned)rank < (unsigned)comm_peers(c) || rank == MPI_ANY_SOURCE || rank == MPI_PROC_NULL;
}

static inline bool api_is_valid_root(const struct comm *c, int root)
{
    return (unsigned)root < (unsigned)comm_peers(c) ||
           (c->remote && (root == MPI_ROOT || root == MPI_PROC_NULL));
}

static inline bool api_is_root(const struct comm *c, int root)
{
    return c->remote ? root == MPI_ROOT : root == c->rank;
}

/* True if this process exchanges data with the root through `buf`. */
static inline bool api_is_leaf(const struct comm *c, int root, const void *buf)
{
    return c->remote ? root >= 0 : buf != MPI_IN_PLACE || root != c->rank;
}

/* True if the buffer must not be NULL. MPI_BOTTOM is a null pointer, and a derived type may hold absolute addresses; a
 * predefined one never does. */
static inline bool api_needs_buffer(const struct dtype *t)
{
    return t->handle != 0 && t->size > 0;
}

/* Each function stores an error text and returns the error class. */
int bad_handle(enum handle_kind kind, const char *param, const void *handle) __attribute__((cold));
int bad_uncommitted(const char *param, const struct dtype *t) __attribute__((cold));
int bad_count(const char *param, MPI_Count value) __attribute__((cold));
int bad_negative(const char *param, MPI_Count value) __attribute__((cold));
int bad_buffer(const char *param) __attribute__((cold));
int bad_rank(const char *param, int rank, const struct comm *c) __attribute__((cold));
int bad_root(const char *param, int root, const struct comm *c) __attribute__((cold));
int bad_tag(const char *param, int tag) __attribute__((cold));
int bad_null(const char *param, int errclass) __attribute__((cold));

/* Check arrays of n: counts that are not negative, datatypes that are valid and committed. */
int api_check_counts(const char *param, struct ivec counts, int n);
int api_check_types(const char *param, const MPI_Datatype types[], int n);
/* Handles a handle that is no datatype. MPI_DATATYPE_NULL with a count of 0 describes no data and is accepted, as in
 * MPICH: the standard does not forbid it, and programs do it. */
int api_check_null_type(const char *param, MPI_Datatype handle, MPI_Count count, struct dtype **out);

#endif
