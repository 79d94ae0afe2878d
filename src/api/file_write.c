/* file_write.c: MPI_File_write and its relatives, blocking and not.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/file.h"
#include "impl.h"
#include "obj/handle.h"

int impl_File_write_at(struct file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
                       struct dtype *datatype, MPI_Status *status)
{
    const struct file_call call = file_write_call(fh, false, AT_OFFSET, offset, buf, count, datatype);
    return file_call_run(&call, status);
}

int impl_File_write_at_all(struct file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
                           struct dtype *datatype, MPI_Status *status)
{
    const struct file_call call = file_write_call(fh, true, AT_OFFSET, offset, buf, count, datatype);
    return file_call_run(&call, status);
}

int impl_File_write(struct file *fh, const void *buf, MPI_Count count, struct dtype *datatype,
                    MPI_Status *status)
{
    const struct file_call call = file_write_call(fh, false, AT_POINTER, 0, buf, count, datatype);
    return file_call_run(&call, status);
}

int impl_File_write_all(struct file *fh, const void *buf, MPI_Count count, struct dtype *datatype,
                        MPI_Status *status)
{
    const struct file_call call = file_write_call(fh, true, AT_POINTER, 0, buf, count, datatype);
    return file_call_run(&call, status);
}

int impl_File_write_shared(struct file *fh, const void *buf, MPI_Count count, struct dtype *datatype,
                           MPI_Status *status)
{
    const struct file_call call = file_write_call(fh, false, AT_SHARED, 0, buf, count, datatype);
    return file_call_run(&call, status);
}

int impl_File_write_ordered(struct file *fh, const void *buf, MPI_Count count, struct dtype *datatype,
                            MPI_Status *status)
{
    const struct file_call call = file_write_call(fh, true, AT_ORDERED, 0, buf, count, datatype);
    return file_call_run(&call, status);
}

int impl_File_iwrite_at(struct file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
                        struct dtype *datatype, MPI_Request *request)
{
    const struct file_call call = file_write_call(fh, false, AT_OFFSET, offset, buf, count, datatype);
    return file_call_start(&call, request);
}

int impl_File_iwrite_at_all(struct file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
                            struct dtype *datatype, MPI_Request *request)
{
    const struct file_call call = file_write_call(fh, true, AT_OFFSET, offset, buf, count, datatype);
    return file_call_start(&call, request);
}

int impl_File_iwrite(struct file *fh, const void *buf, MPI_Count count, struct dtype *datatype,
                     MPI_Request *request)
{
    const struct file_call call = file_write_call(fh, false, AT_POINTER, 0, buf, count, datatype);
    return file_call_start(&call, request);
}

int impl_File_iwrite_all(struct file *fh, const void *buf, MPI_Count count, struct dtype *datatype,
                         MPI_Request *request)
{
    const struct file_call call = file_write_call(fh, true, AT_POINTER, 0, buf, count, datatype);
    return file_call_start(&call, request);
}

int impl_File_iwrite_shared(struct file *fh, const void *buf, MPI_Count count, struct dtype *datatype,
                            MPI_Request *request)
{
    const struct file_call call = file_write_call(fh, false, AT_SHARED, 0, buf, count, datatype);
    return file_call_start(&call, request);
}
