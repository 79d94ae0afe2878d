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

/* The name of each kind in settings, and of its MPI functions by form. */
static const struct {
    const char *name, *calls[COLL_FORMS];
} kinds[COLL_KINDS] = {
#define KIND(upper, lower)                                    \
    {                                                         \
        lower,                                                \
        {                                                     \
            "MPI_" upper, "MPI_I" lower, "MPI_" upper "_init" \
        }                                                     \
    }
    [COLL_BARRIER] = KIND("Barrier", "barrier"),
    [COLL_BCAST] = KIND("Bcast", "bcast"),
    [COLL_GATHER] = KIND("Gather", "gather"),
    [COLL_SCATTER] = KIND("Scatter", "scatter"),
    [COLL_ALLGATHER] = KIND("Allgather", "allgather"),
    [COLL_ALLTOALL] = KIND("Alltoall", "alltoall"),
    [COLL_REDUCE] = KIND("Reduce", "reduce"),
    [COLL_ALLREDUCE] = KIND("Allreduce", "allreduce"),
    [COLL_REDUCE_SCATTER] = KIND("Reduce_scatter", "reduce_scatter"),
    [COLL_SCAN] = KIND("Scan", "scan"),
    [COLL_EXSCAN] = KIND("Exscan", "exscan"),
    [COLL_NEIGHBOR_ALLGATHER] = KIND("Neighbor_allgather", "neighbor_allgather"),
    [COLL_NEIGHBOR_ALLTOALL] = KIND("Neighbor_alltoall", "neighbor_alltoall"),
#undef KIND
};

const char *coll_kind_name(enum coll_kind kind)
{
    return kinds[kind].name;
}

const char *coll_call_name(enum coll_kind kind, enum coll_form form)
{
    return kinds[kind].calls[form];
}
