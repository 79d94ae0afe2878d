/* runs.c: the target's typed memory as short lists of pieces, so that frames need not describe datatypes.
 * Pieces of one length at one stride are one run: a column of a matrix takes 32 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/rma.h"

/* Extends the run by a piece that continues the run's pattern; otherwise returns false. */
static bool run_extend(struct rma_run *run, uint64_t offset, uint64_t length)
{
    if (run->count == 1 && offset == run->offset + run->length) {
        run->length += length;
        return true;
    }
    if (length != run->length)
        return false;
    if (run->count == 1)
        run->stride = offset - run->offset;
    else if (offset != run->offset + run->count * run->stride)
        return false;
    run->count++;
    return true;
}

size_t runs_collect_next(struct dt_cursor *target, size_t room, int max, struct rma_run *runs, int *count)
{
    size_t covered = 0;
    int n = 0;
    while (covered < room) {
        const uint64_t before = target->position;
        void *piece;
        size_t length = dt_cursor_next(target, room - covered, &piece);
        if (length == 0)
            break;
        const uint64_t offset = (uint64_t)(uintptr_t)piece;
        if (n == 0 || !run_extend(&runs[n - 1], offset, length)) {
            if (n == max) {
                dt_cursor_seek(target, before);
                break;
            }
            runs[n++] = (struct rma_run){.offset = offset, .length = length, .count = 1};
        }
        covered += length;
    }
    *count = n;
    return covered;
}
