/* same_call.c: the small collectives of files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/same_call.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "dt/op.h"
#include "ft/ft.h"
#include "obj/error.h"

#define CODE_RANK_BITS 32

int agree_map_failure(struct comm *c, const char *name, int rc)
{
    if (rc && c->broken) {
        ft_revoke(c);
        return err_set(MPIX_ERR_PROC_FAILED,
                       "%s: a process that has the file open has died. The file can only be closed", name);
    }
    return rc;
}

static int agree_run_collective(struct coll_args *a, const char *name)
{
    return agree_map_failure(a->comm, name, coll_run(a));
}

int64_t agree_encode(int rc, int rank)
{
    return rc ? (int64_t)rc << CODE_RANK_BITS | (uint32_t)rank : 0;
}

int agree_decode(int64_t code, const struct comm *c, const char *name)
{
    const int rc = (int)(code >> CODE_RANK_BITS), rank = (int)(uint32_t)code;
    if (rc == 0 || (rank == c->rank && err_detail(rc)[0]))
        return rc;
    const char *errclass = error_class_name(rc);
    return err_set(rc, "%s: rank %d failed (%s)", name, rank, errclass ? errclass : "an error");
}

void agree_args_max(struct coll_args *a, struct comm *c, int64_t *values, int n)
{
    struct dtype *type = dtype_from_handle(MPI_INT64_T);
    *a = (struct coll_args){
        .kind = COLL_ALLREDUCE, .name = "MPI_File operation", .comm = c, .op = op_from_handle(MPI_MAX)};
    a->in_place = true;
    a->send = (struct coll_side){.count = n, .type = type};
    a->recv = (struct coll_side){.buf = values, .count = n, .type = type};
}

void agree_args_gather(struct coll_args *a, struct comm *c, const int64_t *mine, int64_t *all, int n)
{
    struct dtype *type = dtype_from_handle(MPI_INT64_T);
    *a = (struct coll_args){.kind = COLL_ALLGATHER, .name = "MPI_File operation", .comm = c};
    a->send = (struct coll_side){.buf = (void *)(uintptr_t)mine, .count = n, .type = type};
    a->recv = (struct coll_side){.buf = all, .count = n, .type = type};
}

/* Equality is computed by MPI_MAX over each value and its complement: max(v) equals ~max(~v), which is the
 * minimum, only if the value is the same on all ranks. */
int agree_all(struct comm *c, const char *name, int rc, const char *what, const int64_t *values, int n,
              int64_t *most, int nmost)
{
    int64_t words[16] = {agree_encode(rc, c->rank)}, *const v = words + 1 + nmost;
    struct coll_args a;
    ASSERT(1 + nmost + 2 * n <= (int)COUNT_OF(words));
    for (int i = 0; i < nmost; i++)
        words[1 + i] = most[i];
    for (int i = 0; i < n; i++) {
        v[i] = values[i];
        v[n + i] = ~values[i];
    }
    agree_args_max(&a, c, words, 1 + nmost + 2 * n);
    const int failed = agree_run_collective(&a, name);
    if (failed)
        return failed;
    for (int i = 0; i < nmost; i++)
        most[i] = words[1 + i];
    /* A rank that failed with the same class keeps its own, more precise description. */
    if (words[0])
        return rc && (int)(words[0] >> CODE_RANK_BITS) == rc ? rc : agree_decode(words[0], c, name);
    for (int i = 0; i < n; i++)
        if (v[i] != ~v[n + i])
            return err_set(MPI_ERR_NOT_SAME, "%s: ranks passed different values of %s", name, what);
    return MPI_SUCCESS;
}

int agree_error(struct comm *c, const char *name, int rc)
{
    return agree_all(c, name, rc, NULL, NULL, 0, NULL, 0);
}

int agree_check_equal(struct comm *c, const char *name, const char *what, const int64_t *values, int n)
{
    return agree_all(c, name, 0, what, values, n, NULL, 0);
}

int agree_bcast(struct comm *c, void *data, size_t len)
{
    struct coll_args a = {.kind = COLL_BCAST, .name = "MPI_File operation", .comm = c, .root = 0};
    a.recv = (struct coll_side){.buf = data, .count = (MPI_Count)len, .type = dtype_from_handle(MPI_BYTE)};
    return agree_run_collective(&a, "MPI_File operation");
}

int agree_gather(struct comm *c, int64_t value, int64_t *recv)
{
    struct coll_args a;
    agree_args_gather(&a, c, &value, recv, 1);
    return agree_run_collective(&a, "MPI_File operation");
}
