/* device_pack.h: typed data in device memory, which processors cannot access: packed and unpacked by
 * copies of rows, or by kernels that move many blocks at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_DEVICE_PACK_H
#define FP_DT_DEVICE_PACK_H

#include "dt/dtype.h"
#include "gpu/gpu.h"

/* True if a byte of the data is in device memory. MPI_BOTTOM with a datatype of absolute addresses may mix
 * kinds of memory; any other buffer is of one kind. */
bool dt_device_is_buffer(const struct dtype *t, MPI_Count count, const void *buffer);
static inline bool dt_is_device(const void *buffer, MPI_Count count, const struct dtype *t)
{
    return gpu_may_have_memory() && dt_device_is_buffer(t, count, buffer);
}

/* Copies the next `len` packed bytes of a cursor over device memory to or from dense memory of any kind.
 * Returns 0 or an error class; the cursor advances only on success. At least `len` bytes must be left. */
int dt_device_pack(struct dt_cursor *c, void *out, size_t len);
int dt_device_unpack(struct dt_cursor *c, const void *in, size_t len);

/* The device forms of dt_cursor_pack and dt_cursor_unpack: `len` bytes count as moved even if the copy
 * fails, and c->error is set. */
size_t dt_device_pack_some(struct dt_cursor *c, void *out, size_t len);
size_t dt_device_unpack_some(struct dt_cursor *c, const void *in, size_t len);

/* The device forms of dt_pack_all, dt_unpack_all and dt_copy (`len` bytes). */
int dt_device_pack_all(const struct dtype *t, MPI_Count count, const void *buffer, void *out);
int dt_device_unpack_all(const struct dtype *t, MPI_Count count, void *buffer, const void *in, size_t len);
int dt_device_copy(const void *from, MPI_Count from_count, const struct dtype *from_type, void *to,
                   MPI_Count to_count, const struct dtype *to_type, uint64_t len);

/* Data as processors access it: the buffer itself, or a copy of it in host memory with the same layout if it
 * is in device memory. Every open needs a close, also after an error. */
struct dt_host_copy {
    void *buffer;
    char *memory; /* memory of the copy; NULL: no copy was made */
    size_t size;
};
int dt_host_copy_make(struct dt_host_copy *copy, const void *buffer, MPI_Count count,
                      const struct dtype *t); /* copies even host memory */
int dt_host_copy_open(struct dt_host_copy *copy, const void *buffer, MPI_Count count, const struct dtype *t);
/* Copies the host copy, if there is one, back to the buffer. */
int dt_host_copy_store(const struct dt_host_copy *copy, void *buffer, MPI_Count count, const struct dtype *t);
void dt_host_copy_close(struct dt_host_copy *copy);

#endif
