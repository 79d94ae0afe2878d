/* datatype_query.c: queries about a datatype: sizes, extents, names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

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

int impl_Type_get_name(struct dtype *datatype, char *type_name, int *resultlen)
{
    const char *name = datatype ? datatype->name : "MPI_DATATYPE_NULL"; /* since MPI 4.1 */
    size_t length = strlen(name);
    memcpy(type_name, name, length + 1);
    *resultlen = (int)length;
    return 0;
}

int impl_Type_set_name(struct dtype *datatype, const char *type_name)
{
    size_t length = MIN(strlen(type_name), sizeof(datatype->name) - 1);
    memcpy(datatype->name, type_name, length);
    datatype->name[length] = '\0';
    return 0;
}
