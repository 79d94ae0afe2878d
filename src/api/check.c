/* check.c: the error messages about bad arguments, and the checks that are loops.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"

#include <limits.h>
#include <stdio.h>

static const struct {
    const char *noun, *null_name;
    uintptr_t null_value;
    int errclass;
    enum object_magic magic;
} handles[] = {
    [HANDLE_COMM] = {"a communicator", "MPI_COMM_NULL", (uintptr_t)MPI_COMM_NULL, MPI_ERR_COMM, MAGIC_COMM},
    [HANDLE_GROUP] = {"a group", "MPI_GROUP_NULL", (uintptr_t)MPI_GROUP_NULL, MPI_ERR_GROUP, MAGIC_GROUP},
    [HANDLE_DTYPE] = {"a datatype", "MPI_DATATYPE_NULL", (uintptr_t)MPI_DATATYPE_NULL, MPI_ERR_TYPE,
                      MAGIC_DTYPE},
    [HANDLE_OP] = {"an operator", "MPI_OP_NULL", (uintptr_t)MPI_OP_NULL, MPI_ERR_OP, MAGIC_OP},
    [HANDLE_INFO] = {"an info object", "MPI_INFO_NULL", (uintptr_t)MPI_INFO_NULL, MPI_ERR_INFO, MAGIC_INFO},
    [HANDLE_ERRHANDLER] = {"an error handler", "MPI_ERRHANDLER_NULL", (uintptr_t)MPI_ERRHANDLER_NULL,
                           MPI_ERR_ERRHANDLER, MAGIC_ERRHANDLER},
    [HANDLE_SESSION] = {"a session", "MPI_SESSION_NULL", (uintptr_t)MPI_SESSION_NULL, MPI_ERR_SESSION,
                        MAGIC_SESSION},
    [HANDLE_REQUEST] = {"a request", "MPI_REQUEST_NULL", (uintptr_t)MPI_REQUEST_NULL, MPI_ERR_REQUEST,
                        MAGIC_REQUEST},
    [HANDLE_WIN] = {"a window", "MPI_WIN_NULL", (uintptr_t)MPI_WIN_NULL, MPI_ERR_WIN, MAGIC_WIN},
    [HANDLE_FILE] = {"a file", "MPI_FILE_NULL", (uintptr_t)MPI_FILE_NULL, MPI_ERR_FILE, MAGIC_FILE},
};

/* Describes the object that the address points to, if that can be determined; the text follows "comm
 * (0x44000000)" in the message. */
static const char *describe_handle(const void *handle, enum handle_kind wanted, char *out, size_t size)
{
    const char *noun = handles[wanted].noun;
    if (object_has_magic(handle, MAGIC_FREED))
        snprintf(out, size, "is not %s any more: it has been freed", noun);
    else if ((uintptr_t)handle <= UINT32_MAX)
        snprintf(out, size,
                 "is not %s: it was never set, or the program was compiled with another MPI's mpi.h", noun);
    else
        snprintf(out, size, "is not %s: it was never set, or has been freed", noun);
    for (size_t i = 0; i < COUNT_OF(handles); i++)
        if (object_has_magic(handle, handles[i].magic))
            snprintf(out, size, "is %s, where %s is needed", handles[i].noun, noun);
    return out;
}

int bad_handle(enum handle_kind kind, const char *param, const void *handle)
{
    int errclass = handles[kind].errclass;
    if ((uintptr_t)handle == handles[kind].null_value)
        return err_set(errclass, "%s is %s, where %s is needed", param, handles[kind].null_name,
                       handles[kind].noun);
    if (handle_is_predefined(handle))
        return err_set(errclass, "%s is %#lx, which is not %s", param, (unsigned long)(uintptr_t)handle,
                       handles[kind].noun);
    return err_set(errclass, "%s (%p) %s", param, handle, describe_handle(handle, kind, (char[128]){0}, 128));
}

int bad_uncommitted(const char *param, const struct dtype *t)
{
    if (t->name[0])
        return err_set(MPI_ERR_TYPE, "%s (%s) has not been committed with MPI_Type_commit", param, t->name);
    return err_set(MPI_ERR_TYPE, "%s has not been committed with MPI_Type_commit", param);
}

int bad_count(const char *param, MPI_Count value)
{
    return err_set(MPI_ERR_COUNT, "%s is %lld; it must not be negative", param, (long long)value);
}

int bad_negative(const char *param, MPI_Count value)
{
    return err_set(MPI_ERR_ARG, "%s is %lld; it must not be negative", param, (long long)value);
}

int bad_buffer(const char *param)
{
    return err_set(MPI_ERR_BUFFER, "%s is a null pointer, but there is data to move", param);
}

int bad_rank(const char *param, int rank, const struct comm *c)
{
    if (rank == MPI_ANY_SOURCE)
        return err_set(MPI_ERR_RANK, "%s is MPI_ANY_SOURCE, which only a receive may use", param);
    return err_set(MPI_ERR_RANK, "%s is %d; the communicator's ranks are 0 to %d", param, rank,
                   comm_peers(c) - 1);
}

int bad_root(const char *param, int root, const struct comm *c)
{
    const char *also = c->remote ? " of the remote group, MPI_ROOT or MPI_PROC_NULL" : "";
    return err_set(MPI_ERR_ROOT, "%s is %d; it must be a rank from 0 to %d%s", param, root, comm_peers(c) - 1,
                   also);
}

int bad_tag(const char *param, int tag)
{
    if (tag == MPI_ANY_TAG)
        return err_set(MPI_ERR_TAG, "%s is MPI_ANY_TAG, which only a receive may use", param);
    return err_set(MPI_ERR_TAG, "%s is %d; tags are 0 to %d", param, tag, INT_MAX);
}

int bad_null(const char *param, int errclass)
{
    return err_set(errclass, "%s is a null pointer", param);
}

int api_check_counts(const char *param, struct ivec counts, int n)
{
    if (!counts.p)
        return bad_null(param, MPI_ERR_ARG);
    for (int i = 0; i < n; i++)
        if (ivec_get(counts, (size_t)i) < 0)
            return err_set(MPI_ERR_COUNT, "%s[%d] is %lld; it must not be negative", param, i,
                           (long long)ivec_get(counts, (size_t)i));
    return MPI_SUCCESS;
}

int api_check_null_type(const char *param, MPI_Datatype handle, MPI_Count count, struct dtype **out)
{
    if (handle != MPI_DATATYPE_NULL || count != 0)
        return bad_handle(HANDLE_DTYPE, param, handle);
    *out = dt_predefined((uint32_t)(uintptr_t)MPI_BYTE);
    return MPI_SUCCESS;
}

int api_check_types(const char *param, const MPI_Datatype types[], int n)
{
    if (!types)
        return bad_null(param, MPI_ERR_ARG);
    for (int i = 0; i < n; i++) {
        struct dtype *t = dtype_from_handle(types[i]);
        if (!t)
            return err_set(MPI_ERR_TYPE, "%s[%d] is not a datatype", param, i);
        if (!t->committed)
            return err_set(MPI_ERR_TYPE, "%s[%d] has not been committed with MPI_Type_commit", param, i);
    }
    return MPI_SUCCESS;
}
