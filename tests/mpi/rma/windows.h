/* windows.h: creates every kind of window in the same way, so that tests can run on all of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TEST_WINDOWS_H
#define FP_TEST_WINDOWS_H

#include "mpitest.h"

enum flavor { CREATED, ALLOCATED, SHARED, DYNAMIC, FLAVORS };

struct window {
    MPI_Win win;
    MPI_Comm comm;
    int rank, size;
    char *memory;
    MPI_Aint *bases; /* displacement of each rank's memory: 0, or its address (dynamic windows) */
    enum flavor flavor;
};

/* Creates a window with `bytes` bytes of zeroed memory at each rank and displacements in bytes. Returns
 * false if these ranks cannot have such a window. */
static inline int window_open(struct window *w, enum flavor flavor, MPI_Aint bytes)
{
    MPI_Aint mine = 0;
    w->flavor = flavor;
    MPI_Comm_dup(MPI_COMM_WORLD, &w->comm);
    MPI_Comm_rank(w->comm, &w->rank);
    MPI_Comm_size(w->comm, &w->size);
    w->memory = NULL;
    if (flavor == CREATED || flavor == DYNAMIC)
        w->memory = calloc(1, (size_t)bytes);
    if (flavor == CREATED) {
        MPI_Win_create(w->memory, bytes, 1, MPI_INFO_NULL, w->comm, &w->win);
    } else if (flavor == ALLOCATED) {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, w->comm, &w->memory, &w->win);
    } else if (flavor == SHARED) {
        MPI_Comm node;
        int here;
        MPI_Comm_split_type(w->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        MPI_Comm_size(node, &here);
        MPI_Comm_free(&node);
        if (here != w->size) {
            MPI_Comm_free(&w->comm);
            return 0;
        }
        MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, w->comm, &w->memory, &w->win);
    } else {
        MPI_Win_create_dynamic(MPI_INFO_NULL, w->comm, &w->win);
        MPI_Win_attach(w->win, w->memory, bytes);
        MPI_Get_address(w->memory, &mine);
    }
    w->bases = malloc((size_t)w->size * sizeof(MPI_Aint));
    MPI_Allgather(&mine, 1, MPI_AINT, w->bases, 1, MPI_AINT, w->comm);
    memset(w->memory, 0, (size_t)bytes);
    MPI_Barrier(w->comm);
    return 1;
}

static inline void window_close(struct window *w)
{
    if (w->flavor == DYNAMIC) {
        MPI_Barrier(w->comm);
        MPI_Win_detach(w->win, w->memory);
    }
    MPI_Win_free(&w->win);
    EXPECT(w->win == MPI_WIN_NULL);
    if (w->flavor == CREATED || w->flavor == DYNAMIC)
        free(w->memory);
    free(w->bases);
    MPI_Comm_free(&w->comm);
}

static inline MPI_Group window_get_other_ranks(const struct window *w)
{
    MPI_Group all, others;
    MPI_Win_get_group(w->win, &all);
    MPI_Group_excl(all, 1, &w->rank, &others);
    MPI_Group_free(&all);
    return others;
}

#endif
