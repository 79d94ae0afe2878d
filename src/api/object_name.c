/* object_name.c: the names of communicators, datatypes and windows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "api/forward.h"

int object_name_set(char name[MPI_MAX_OBJECT_NAME], const char *text)
{
    snprintf(name, MPI_MAX_OBJECT_NAME, "%s", text);
    return MPI_SUCCESS;
}

int object_name_get(const char *name, char *out, int *resultlen)
{
    *resultlen = (int)strlen(strcpy(out, name));
    return MPI_SUCCESS;
}
