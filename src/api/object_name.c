/* object_name.c: the names of communicators, datatypes and windows. A name that is too long is truncated (MPI-5.0, 7.8).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "dt/dtype.h"
#include "impl.h"
#include "obj/comm.h"
#include "rma/win.h"

static int name_set(char name[MPI_MAX_OBJECT_NAME], const char *text)
{
    snprintf(name, MPI_MAX_OBJECT_NAME, "%s", text);
    return MPI_SUCCESS;
}

static int name_get(const char *name, char *out, int *resultlen)
{
    *resultlen = (int)strlen(strcpy(out, name));
    return MPI_SUCCESS;
}

int impl_Comm_set_name(struct comm *comm, const char *comm_name)
{
    return name_set(comm->name, comm_name);
}

int impl_Comm_get_name(struct comm *comm, char *comm_name, int *resultlen)
{
    return name_get(comm ? comm->name : "MPI_COMM_NULL", comm_name, resultlen);
}

int impl_Type_set_name(struct dtype *datatype, const char *type_name)
{
    return name_set(datatype->name, type_name);
}

int impl_Type_get_name(struct dtype *datatype, char *type_name, int *resultlen)
{
    return name_get(datatype ? datatype->name : "MPI_DATATYPE_NULL", type_name, resultlen);
}

int impl_Win_set_name(struct win *win, const char *win_name)
{
    return name_set(win->name, win_name);
}

int impl_Win_get_name(struct win *win, char *win_name, int *resultlen)
{
    return name_get(win ? win->name : "MPI_WIN_NULL", win_name, resultlen);
}
