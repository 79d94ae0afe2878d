/* range.c: finds the memory that an offset from another rank refers to, and records the attached regions of
 * dynamic windows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "rma/rma.h"

/* True if the range is inside attached memory. It may span adjacent regions: programs attach arrays piece by
 * piece. */
bool win_attached(const struct win *w, uint64_t address, uint64_t len)
{
    for (int i = 0; i < w->nregions; i++) {
        const struct win_region *r = &w->regions[i];
        if (address < r->base || address - r->base >= r->size)
            continue;
        const uint64_t here = r->size - (address - r->base);
        if (here >= len)
            return true;
        address += here;
        len -= here;
        i = -1; /* search again: the rest may be in any other region */
    }
    return len == 0;
}

char *win_check_address(struct win *w, uint64_t offset, uint64_t len)
{
    if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return win_attached(w, offset, len) ? (char *)(uintptr_t)offset : NULL;
    if (offset > (uint64_t)w->size || len > (uint64_t)w->size - offset)
        return NULL;
    return (char *)w->memory + offset;
}

int win_attach(struct win *w, void *base, MPI_Aint size)
{
    const uint64_t start = (uintptr_t)base;
    if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return win_error(w, MPI_ERR_RMA_FLAVOR,
                         "memory can only be attached to a window of MPI_Win_create_dynamic");
    for (int i = 0; i < w->nregions; i++)
        if (start < w->regions[i].base + w->regions[i].size && w->regions[i].base < start + (uint64_t)size)
            return win_error(w, MPI_ERR_RMA_ATTACH,
                             "%lld bytes at %p overlap memory that is attached already", (long long)size,
                             base);
    if (w->nregions == w->regions_room) {
        int room = w->regions_room ? 2 * w->regions_room : 8;
        struct win_region *more = realloc(w->regions, (size_t)room * sizeof(*more));
        if (!more)
            return win_error(w, MPI_ERR_NO_MEM, "out of memory: cannot attach memory");
        w->regions = more;
        w->regions_room = room;
    }
    w->regions[w->nregions++] = (struct win_region){.base = start, .size = (uint64_t)size};
    return MPI_SUCCESS;
}

int win_detach(struct win *w, const void *base)
{
    if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return win_error(w, MPI_ERR_RMA_FLAVOR,
                         "only a window of MPI_Win_create_dynamic has attached memory");
    for (int i = 0; i < w->nregions; i++)
        if (w->regions[i].base == (uintptr_t)base) {
            w->regions[i] = w->regions[--w->nregions];
            return MPI_SUCCESS;
        }
    return win_error(w, MPI_ERR_RMA_ATTACH, "no attached memory begins at %p", base);
}
