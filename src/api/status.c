/* status.c: reading and writing an MPI_Status, and its forms in Fortran. p2p/request.h defines how counts are
 * stored in it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "impl.h"
#include "p2p/request.h"

int impl_Status_get_source(const MPI_Status *status, int *source)
{
    *source = status->MPI_SOURCE;
    return MPI_SUCCESS;
}

int impl_Status_get_tag(const MPI_Status *status, int *tag)
{
    *tag = status->MPI_TAG;
    return MPI_SUCCESS;
}

int impl_Status_get_error(const MPI_Status *status, int *error)
{
    *error = status->MPI_ERROR;
    return MPI_SUCCESS;
}

int impl_Status_set_source(MPI_Status *status, int source)
{
    status->MPI_SOURCE = source;
    return MPI_SUCCESS;
}

int impl_Status_set_tag(MPI_Status *status, int tag)
{
    status->MPI_TAG = tag;
    return MPI_SUCCESS;
}

int impl_Status_set_error(MPI_Status *status, int error)
{
    status->MPI_ERROR = error;
    return MPI_SUCCESS;
}

int impl_Status_set_cancelled(MPI_Status *status, int flag)
{
    status_set_cancelled(status, flag != 0);
    return MPI_SUCCESS;
}

int impl_Test_cancelled(const MPI_Status *status, int *flag)
{
    *flag = status_cancelled(status);
    return MPI_SUCCESS;
}

/* The three forms hold the same eight integers in the same order (MPI_F_SOURCE, MPI_F_TAG, MPI_F_ERROR, the
 * rest), so that converting is copying. */
_Static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint),
               "C and Fortran statuses are alike");
_Static_assert(sizeof(MPI_F08_status) == sizeof(MPI_Status), "mpi_f08 statuses are like those in C");

static int copy_status(void *to, const void *from)
{
    memcpy(to, from, sizeof(MPI_Status));
    return MPI_SUCCESS;
}

int impl_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
    return copy_status(f_status, c_status);
}

int impl_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
    return copy_status(c_status, f_status);
}

int impl_Status_c2f08(const MPI_Status *c_status, MPI_F08_status *f08_status)
{
    return copy_status(f08_status, c_status);
}

int impl_Status_f082c(const MPI_F08_status *f08_status, MPI_Status *c_status)
{
    return copy_status(c_status, f08_status);
}

int impl_Status_f2f08(const MPI_Fint *f_status, MPI_F08_status *f08_status)
{
    return copy_status(f08_status, f_status);
}

int impl_Status_f082f(const MPI_F08_status *f08_status, MPI_Fint *f_status)
{
    return copy_status(f_status, f08_status);
}
