/* count.h: from bytes received to elements, and back.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_COUNT_H
#define FP_DT_COUNT_H

#include "dt/dtype.h"

/* Whole elements of the type in `bytes` bytes; MPI_UNDEFINED when they do not come out even. */
void dt_get_count(const struct dtype *t, MPI_Count bytes, MPI_Count *count);

/* Basic elements in `bytes` bytes; MPI_UNDEFINED when the last one is cut. */
void dt_get_elements(const struct dtype *t, MPI_Count bytes, MPI_Count *elements);

/* Bytes of the first `elements` basic elements of a sequence of this type. MPI_ERR_ARG when it has none. */
int dt_set_elements(const struct dtype *t, MPI_Count elements, MPI_Count *bytes);

#endif
