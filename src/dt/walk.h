/* walk.h: a walk over the basic elements of typed data, in type-map order, that knows each one's type: for
 * conversions and for reductions on derived types. Moving bytes needs no types and goes through the layout
 * instead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_WALK_H
#define FP_DT_WALK_H

#include "dt/dtype.h"

/* Called with `count` elements of a predefined type, one extent apart; a non-zero result stops the walk. */
typedef int dt_visit(void *context, struct dtype *basic, MPI_Count count, char *address);

/* Where a walk stops to visit. */
enum dt_walk_depth {
    WALK_PREDEFINED, /* pairs are visited whole */
    WALK_BASIC,      /* pairs are visited half by half */
};

int dt_walk(struct dtype *t, MPI_Count count, void *buffer, enum dt_walk_depth depth, dt_visit *visit,
            void *context);

#endif
