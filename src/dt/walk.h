/* walk.h: a walk over the basic elements of typed data, in type-map order, with the type of each element:
 * for conversions and for reductions on derived types. Copies of bytes need no types and use the layout
 * instead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_WALK_H
#define FP_DT_WALK_H

#include "dt/dtype.h"

/* Called with `count` elements of a predefined type, one extent apart. A result other than 0 stops the
 * walk. */
typedef int dt_visit(void *context, struct dtype *basic, MPI_Count count, char *address);

/* The types of the elements that are visited. */
enum dt_walk_depth {
    WALK_PREDEFINED, /* a pair (value and index) is one element */
    WALK_BASIC,      /* a pair is two elements */
};

/* Returns 0, or the result of the visit that stopped the walk. */
int dt_walk(struct dtype *t, MPI_Count count, void *buffer, enum dt_walk_depth depth, dt_visit *visit,
            void *context);

#endif
