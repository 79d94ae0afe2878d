/* device.h: typed data in device memory, which processors cannot access: packed and unpacked by copies of rows, or by kernels that
 * move many blocks at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_DEVICE_H
#define FP_DT_DEVICE_H

#include "dt/dtype.h"

/* The next `len` packed bytes of a cursor over device memory, to or from dense memory of any kind. 0, or an error class; the
 * cursor has advanced if it is 0. There are at least `len` bytes left. */
int dt_device_pack(struct dt_cursor *c, void *out, size_t len);
int dt_device_unpack(struct dt_cursor *c, const void *in, size_t len);

#endif
