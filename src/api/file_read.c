/* file_read.c: MPI_File_read and its relatives, blocking and not.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/file.h"
#include "impl.h"
#include "obj/handle.h"

int impl_File_read_at(struct file *fh, MPI_Offset offset, void *buf, MPI_Count count, struct dtype *datatype,
                      MPI_Status *status)
{
    const struct file_call call = file_read_call(fh, false, AT_OFFSET, offset, buf, count, datatype);
    return file_call_run(&call, status);
}

int impl_File_read_at_all(struct file *fh, MPI_Offset offset, void *buf, MPI_Count count,
                          struct dtype *datatype, MPI_Status *status)
{
    const struct file_call call = file_read_call(fh, true, AT_OFFSET, offset, buf, count, datatype);
    return file_call_run(&call, status);
}

int impl_File_read(struct file *fh, void *buf, MPI_Count count, struct dtype *datatype, MPI_Status *status)
{
    const struct file_call call = file_read_call(fh, false, AT_POINTER, 0, buf, count, datatype);
    return file_call_run(&call, status);
}

int impl_File_read_all(struct file *fh, void *buf, MPI_Count count, struct dtype *datatype,
                       MPI_Status *status)
{
    const struct file_call call = file_read_call(fh, true, AT_POINTER, 0, buf, count, datatype);
    return file_call_run(&call, status);
}

int impl_File_read_shared(struct file *fh, void *buf, MPI_Count count, struct dtype *datatype,
                          MPI_Status *status)
{
    const struct file_call call = file_read_call(fh, false, AT_SHARED, 0, buf, count, datatype);
    return file_call_run(&call, status);
}

int impl_File_read_ordered(struct file *fh, void *buf, MPI_Count count, struct dtype *datatype,
                           MPI_Status *status)
{
    const struct file_call call = file_read_call(fh, true, AT_ORDERED, 0, buf, count, datatype);
    return file_call_run(&call, status);
}

int impl_File_iread_at(struct file *fh, MPI_Offset offset, void *buf, MPI_Count count, struct dtype *datatype,
                       MPI_Request *request)
{
    const struct file_call call = file_read_call(fh, false, AT_OFFSET, offset, buf, count, datatype);
    return file_call_start(&call, request);
}

int impl_File_iread_at_all(struct file *fh, MPI_Offset offset, void *buf, MPI_Count count,
                           struct dtype *datatype, MPI_Request *request)
{
    const struct file_call call = file_read_call(fh, true, AT_OFFSET, offset, buf, count, datatype);
    return file_call_start(&call, request);
}

int impl_File_iread(struct file *fh, void *buf, MPI_Count count, struct dtype *datatype, MPI_Request *request)
{
    const struct file_call call = file_read_call(fh, false, AT_POINTER, 0, buf, count, datatype);
    return file_call_start(&call, request);
}

int impl_File_iread_all(struct file *fh, void *buf, MPI_Count count, struct dtype *datatype,
                        MPI_Request *request)
{
    const struct file_call call = file_read_call(fh, true, AT_POINTER, 0, buf, count, datatype);
    return file_call_start(&call, request);
}

int impl_File_iread_shared(struct file *fh, void *buf, MPI_Count count, struct dtype *datatype,
                           MPI_Request *request)
{
    const struct file_call call = file_read_call(fh, false, AT_SHARED, 0, buf, count, datatype);
    return file_call_start(&call, request);
}
