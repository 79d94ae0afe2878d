/* algorithm.c: the table of algorithms, gathered by the linker from the files in algo/.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/sched/algorithm.h"

#include <string.h>

extern const struct coll_algorithm *const __start_fp_coll_algorithms[]
    __attribute__((weak, visibility("hidden")));
extern const struct coll_algorithm *const __stop_fp_coll_algorithms[]
    __attribute__((weak, visibility("hidden")));

size_t algorithms_count(void)
{
    return (size_t)(__stop_fp_coll_algorithms - __start_fp_coll_algorithms);
}

const struct coll_algorithm *algorithms_get(size_t index)
{
    return __start_fp_coll_algorithms[index];
}

const struct coll_algorithm *algorithm_find(enum coll_kind kind, const char *name)
{
    for (size_t i = 0; i < algorithms_count(); i++) {
        const struct coll_algorithm *a = algorithms_get(i);
        if (a->kind == kind && strcmp(a->name, name) == 0)
            return a;
    }
    return NULL;
}

bool algorithm_fits(const struct coll_algorithm *a, const struct coll_shape *shape)
{
    if (a->kind != shape->kind || !(a->needs & NEED_INTER) != (shape->remote_size == 0))
        return false;
    if ((a->needs & NEED_COMMUTATIVE) && !shape->commutative)
        return false;
    if ((a->needs & NEED_ADJACENT) && !shape->adjacent)
        return false;
    if ((a->needs & NEED_POW2) && (shape->size & (shape->size - 1)) != 0)
        return false;
    if ((a->needs & NEED_EVEN) && shape->size % 2 != 0)
        return false;
    return !(a->needs & NEED_TWO) || shape->size >= 2;
}

const char *coll_kind_name(enum coll_kind kind)
{
    static const char *const names[COLL_KINDS] = {
        [COLL_BARRIER] = "barrier",
        [COLL_BCAST] = "bcast",
        [COLL_GATHER] = "gather",
        [COLL_SCATTER] = "scatter",
        [COLL_ALLGATHER] = "allgather",
        [COLL_ALLTOALL] = "alltoall",
        [COLL_REDUCE] = "reduce",
        [COLL_ALLREDUCE] = "allreduce",
        [COLL_REDUCE_SCATTER] = "reduce_scatter",
        [COLL_SCAN] = "scan",
        [COLL_EXSCAN] = "exscan",
        [COLL_NEIGHBOR_ALLGATHER] = "neighbor_allgather",
        [COLL_NEIGHBOR_ALLTOALL] = "neighbor_alltoall",
    };
    return names[kind];
}

const char *coll_call_name(enum coll_kind kind, enum coll_form form)
{
#define FORMS(upper, lower)                               \
    {                                                     \
        "MPI_" upper, "MPI_I" lower, "MPI_" upper "_init" \
    }
    static const char *const names[COLL_KINDS][3] = {
        [COLL_BARRIER] = FORMS("Barrier", "barrier"),
        [COLL_BCAST] = FORMS("Bcast", "bcast"),
        [COLL_GATHER] = FORMS("Gather", "gather"),
        [COLL_SCATTER] = FORMS("Scatter", "scatter"),
        [COLL_ALLGATHER] = FORMS("Allgather", "allgather"),
        [COLL_ALLTOALL] = FORMS("Alltoall", "alltoall"),
        [COLL_REDUCE] = FORMS("Reduce", "reduce"),
        [COLL_ALLREDUCE] = FORMS("Allreduce", "allreduce"),
        [COLL_REDUCE_SCATTER] = FORMS("Reduce_scatter", "reduce_scatter"),
        [COLL_SCAN] = FORMS("Scan", "scan"),
        [COLL_EXSCAN] = FORMS("Exscan", "exscan"),
        [COLL_NEIGHBOR_ALLGATHER] = FORMS("Neighbor_allgather", "neighbor_allgather"),
        [COLL_NEIGHBOR_ALLTOALL] = FORMS("Neighbor_alltoall", "neighbor_alltoall")};
#undef FORMS
    return names[kind][form];
}
