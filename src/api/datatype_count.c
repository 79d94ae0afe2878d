/* datatype_count.c: the amount of received data in a status, in elements of a datatype.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/count.h"
#include "impl.h"
#include "p2p/request.h"

int impl_Get_count(const MPI_Status *status, struct dtype *datatype, MPI_Count *count)
{
    dt_get_count(datatype, status_bytes(status), count);
    return 0;
}

int impl_Get_elements(const MPI_Status *status, struct dtype *datatype, MPI_Count *count)
{
    dt_get_elements(datatype, status_bytes(status), count);
    return 0;
}

int impl_Status_set_elements(MPI_Status *status, struct dtype *datatype, MPI_Count count)
{
    MPI_Count bytes;
    int rc = dt_set_elements(datatype, count, &bytes);
    if (!rc)
        status_set_bytes(status, bytes);
    return rc;
}
