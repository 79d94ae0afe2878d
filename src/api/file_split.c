/* file_split.c: split collective operations: begun in one call, ended in another.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/file.h"
#include "impl.h"
#include "obj/handle.h"

int impl_File_read_at_all_begin(struct file *fh, MPI_Offset offset, void *buf, MPI_Count count,
                                struct dtype *datatype)
{
    const struct file_call call = {.file = fh,
                                   .write = false,
                                   .all = true,
                                   .place = AT_OFFSET,
                                   .offset = offset,
                                   .buf = buf,
                                   .count = count,
                                   .type = datatype};
    return file_call_begin(&call, SPLIT_READ_AT);
}

int impl_File_read_at_all_end(struct file *fh, void *buf, MPI_Status *status)
{
    (void)buf; /* that of the begin call is used */
    return file_call_end(fh, SPLIT_READ_AT, status);
}

int impl_File_read_all_begin(struct file *fh, void *buf, MPI_Count count, struct dtype *datatype)
{
    const struct file_call call = {.file = fh,
                                   .write = false,
                                   .all = true,
                                   .place = AT_POINTER,
                                   .buf = buf,
                                   .count = count,
                                   .type = datatype};
    return file_call_begin(&call, SPLIT_READ);
}

int impl_File_read_all_end(struct file *fh, void *buf, MPI_Status *status)
{
    (void)buf; /* that of the begin call is used */
    return file_call_end(fh, SPLIT_READ, status);
}

int impl_File_read_ordered_begin(struct file *fh, void *buf, MPI_Count count, struct dtype *datatype)
{
    const struct file_call call = {.file = fh,
                                   .write = false,
                                   .all = true,
                                   .place = AT_ORDERED,
                                   .buf = buf,
                                   .count = count,
                                   .type = datatype};
    return file_call_begin(&call, SPLIT_READ_ORDERED);
}

int impl_File_read_ordered_end(struct file *fh, void *buf, MPI_Status *status)
{
    (void)buf; /* that of the begin call is used */
    return file_call_end(fh, SPLIT_READ_ORDERED, status);
}

int impl_File_write_at_all_begin(struct file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
                                 struct dtype *datatype)
{
    const struct file_call call = {.file = fh,
                                   .write = true,
                                   .all = true,
                                   .place = AT_OFFSET,
                                   .offset = offset,
                                   .buf = (void *)(uintptr_t)buf,
                                   .count = count,
                                   .type = datatype};
    return file_call_begin(&call, SPLIT_WRITE_AT);
}

int impl_File_write_at_all_end(struct file *fh, const void *buf, MPI_Status *status)
{
    (void)buf; /* that of the begin call is used */
    return file_call_end(fh, SPLIT_WRITE_AT, status);
}

int impl_File_write_all_begin(struct file *fh, const void *buf, MPI_Count count, struct dtype *datatype)
{
    const struct file_call call = {.file = fh,
                                   .write = true,
                                   .all = true,
                                   .place = AT_POINTER,
                                   .buf = (void *)(uintptr_t)buf,
                                   .count = count,
                                   .type = datatype};
    return file_call_begin(&call, SPLIT_WRITE);
}

int impl_File_write_all_end(struct file *fh, const void *buf, MPI_Status *status)
{
    (void)buf; /* that of the begin call is used */
    return file_call_end(fh, SPLIT_WRITE, status);
}

int impl_File_write_ordered_begin(struct file *fh, const void *buf, MPI_Count count, struct dtype *datatype)
{
    const struct file_call call = {.file = fh,
                                   .write = true,
                                   .all = true,
                                   .place = AT_ORDERED,
                                   .buf = (void *)(uintptr_t)buf,
                                   .count = count,
                                   .type = datatype};
    return file_call_begin(&call, SPLIT_WRITE_ORDERED);
}

int impl_File_write_ordered_end(struct file *fh, const void *buf, MPI_Status *status)
{
    (void)buf; /* that of the begin call is used */
    return file_call_end(fh, SPLIT_WRITE_ORDERED, status);
}
