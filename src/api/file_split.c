/* file_split.c: split collective operations: begun in one call, ended in another.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/file.h"
#include "impl.h"
#include "obj/handle.h"

int impl_File_read_at_all_begin(struct file *fh, MPI_Offset offset, void *buf, MPI_Count count,
                                struct dtype *datatype)
{
    const struct file_call call = file_read_call(fh, true, AT_OFFSET, offset, buf, count, datatype);
    return file_call_begin(&call, SPLIT_READ_AT);
}

int impl_File_read_at_all_end(struct file *fh, void *buf, MPI_Status *status)
{
    (void)buf; /* that of the begin call is used */
    return file_call_end(fh, SPLIT_READ_AT, status);
}

int impl_File_read_all_begin(struct file *fh, void *buf, MPI_Count count, struct dtype *datatype)
{
    const struct file_call call = file_read_call(fh, true, AT_POINTER, 0, buf, count, datatype);
    return file_call_begin(&call, SPLIT_READ);
}

int impl_File_read_all_end(struct file *fh, void *buf, MPI_Status *status)
{
    (void)buf; /* that of the begin call is used */
    return file_call_end(fh, SPLIT_READ, status);
}

int impl_File_read_ordered_begin(struct file *fh, void *buf, MPI_Count count, struct dtype *datatype)
{
    const struct file_call call = file_read_call(fh, true, AT_ORDERED, 0, buf, count, datatype);
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
    const struct file_call call = file_write_call(fh, true, AT_OFFSET, offset, buf, count, datatype);
    return file_call_begin(&call, SPLIT_WRITE_AT);
}

int impl_File_write_at_all_end(struct file *fh, const void *buf, MPI_Status *status)
{
    (void)buf; /* that of the begin call is used */
    return file_call_end(fh, SPLIT_WRITE_AT, status);
}

int impl_File_write_all_begin(struct file *fh, const void *buf, MPI_Count count, struct dtype *datatype)
{
    const struct file_call call = file_write_call(fh, true, AT_POINTER, 0, buf, count, datatype);
    return file_call_begin(&call, SPLIT_WRITE);
}

int impl_File_write_all_end(struct file *fh, const void *buf, MPI_Status *status)
{
    (void)buf; /* that of the begin call is used */
    return file_call_end(fh, SPLIT_WRITE, status);
}

int impl_File_write_ordered_begin(struct file *fh, const void *buf, MPI_Count count, struct dtype *datatype)
{
    const struct file_call call = file_write_call(fh, true, AT_ORDERED, 0, buf, count, datatype);
    return file_call_begin(&call, SPLIT_WRITE_ORDERED);
}

int impl_File_write_ordered_end(struct file *fh, const void *buf, MPI_Status *status)
{
    (void)buf; /* that of the begin call is used */
    return file_call_end(fh, SPLIT_WRITE_ORDERED, status);
}
