/* error.c: error classes, codes and strings. Callable at any time, also without MPI_Init.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/error.h"

#include <stdio.h>

#include "base/err.h"
#include "impl.h"

int impl_Error_string(int errorcode, char *string, int *resultlen)
{
    unsigned count;
    int rc = error_text(errorcode, string, resultlen);
    if (rc)
        return rc;
    const char *detail = err_get_reported(errorcode, &count);
    if (*detail && errorcode == MPI_ERR_OTHER) /* the text of MPI_ERR_OTHER describes nothing */
        *resultlen = snprintf(string, MPI_MAX_ERROR_STRING, "%s", error_class_name(errorcode));
    const size_t room = (size_t)(MPI_MAX_ERROR_STRING - *resultlen);
    if (*detail && count > 1)
        *resultlen +=
            snprintf(string + *resultlen, room, "; the last of %u errors of this class: %s", count, detail);
    else if (*detail)
        *resultlen +=
            snprintf(string + *resultlen, room, "%s%s", errorcode == MPI_ERR_OTHER ? ": " : "; ", detail);
    *resultlen = MIN(*resultlen, MPI_MAX_ERROR_STRING - 1);
    return MPI_SUCCESS;
}
