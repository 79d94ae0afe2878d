/* external.h: the portable representation "external32": big-endian, IEEE, fixed sizes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_EXTERNAL_H
#define FP_DT_EXTERNAL_H

#include "dt/dtype.h"

MPI_Count dt_external_size(const struct dtype *t, MPI_Count count);

/* MPI_ERR_CONVERSION if a value does not fit its external form. */
int dt_external_pack(struct dtype *t, MPI_Count count, const void *buffer, void *out);
/* Converts the basic elements that are complete in the first `len` bytes of `in`; memory of the others is not
 * changed. Returns the size in memory of the elements that were converted. */
MPI_Count dt_external_unpack(struct dtype *t, MPI_Count count, void *buffer, const void *in, uint64_t len);

#endif
