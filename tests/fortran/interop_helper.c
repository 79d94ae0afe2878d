/* interop_helper.c: the C part of interop.f90: a profiling tool for MPI_Send, and access to attributes
 * that Fortran sets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int c_sends_(void);
int c_ignores_(MPI_Fint *status, MPI_Fint *statuses);
void c_attributes_(MPI_Fint *comm, MPI_Fint *from_fortran, MPI_Fint *from_c);

static int sends;

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int c_sends_(void)
{
    return sends;
}

int c_ignores_(MPI_Fint *status, MPI_Fint *statuses)
{
    return status == MPI_F_STATUS_IGNORE && statuses == MPI_F_STATUSES_IGNORE;
}

/* C gets a pointer to an attribute value that Fortran set; Fortran gets a value that C set as a number. */
void c_attributes_(MPI_Fint *comm, MPI_Fint *from_fortran, MPI_Fint *from_c)
{
    MPI_Comm c = MPI_Comm_f2c(*comm);
    MPI_Aint *value = NULL;
    int flag = 0;
    MPI_Comm_get_attr(c, *from_fortran, &value, &flag);
    if (!flag || *value != 123456789012) {
        fprintf(stderr, "C did not find what Fortran set\n");
        exit(1);
    }
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, from_c, NULL);
    MPI_Comm_set_attr(c, *from_c, (void *)4660);
}
