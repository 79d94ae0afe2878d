/* datatype_query.c: queries about a datatype: sizes and extents.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/dtype.h"
#include "impl.h"

int impl_Type_size(struct dtype *datatype, MPI_Count *size)
{
    *size = datatype->size;
    return 0;
}

int impl_Type_get_extent(struct dtype *datatype, MPI_Count *lb, MPI_Count *extent)
{
    *lb = datatype->lb;
    *extent = datatype->extent;
    return 0;
}

int impl_Type_get_true_extent(struct dtype *datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
    *true_lb = datatype->true_lb;
    *true_extent = datatype->true_extent;
    return 0;
}
