/* walk.c: descends from the shape of a type to its predefined types.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/walk.h"

#include "dt/build.h"

static int walk_shape(const struct dt_shape *s, char *at, enum dt_walk_depth depth, dt_visit *visit,
                      void *context)
{
    for (MPI_Count r = 0; r < s->repeat; r++, at = ptr_add(at, s->stride)) {
        for (MPI_Count i = 0; i < s->count; i++) {
            const struct dt_part *part = &s->part[i];
            int rc = dt_walk(part->type, part->count, ptr_add(at, part->offset), depth, visit, context);
            if (rc)
                return rc;
        }
    }
    return 0;
}

int dt_walk(struct dtype *t, MPI_Count count, void *buffer, enum dt_walk_depth depth, dt_visit *visit,
            void *context)
{
    char *at = buffer;
    if (count == 0 || t->size == 0)
        return 0;
    if (!t->shape || (t->obj.predefined && depth == WALK_PREDEFINED))
        return visit(context, t, count, at);
    for (MPI_Count i = 0; i < count; i++, at = ptr_add(at, t->extent)) {
        int rc = walk_shape(t->shape, at, depth, visit, context);
        if (rc)
            return rc;
    }
    return 0;
}
