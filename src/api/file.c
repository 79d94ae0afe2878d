/* file.c: files as objects: opening and closing, queries and settings, file pointers and data
 * representations.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/file.h"

#include <string.h>

#include "api/check.h"
#include "api/enter.h"
#include "api/forward.h"
#include "base/checked.h"
#include "impl.h"
#include "io/agree.h"
#include "io/datarep.h"
#include "io/file_op.h"
#include "io/pointer.h"
#include "obj/handle.h"

int file_return_handle(int rc, struct file *made, MPI_File *out)
{
    *out = rc ? MPI_FILE_NULL : (MPI_File)made;
    return rc;
}

int impl_File_close(MPI_File *fh)
{
    struct file *f = file_from(*fh);
    if (!f)
        return bad_handle(HANDLE_FILE, "fh", *fh);
    const int rc = io_op_wait_all(f);
    if (rc)
        return rc;
    *fh = MPI_FILE_NULL;
    return file_close(f);
}

int impl_File_get_size(struct file *fh, MPI_Offset *size)
{
    int64_t bytes = 0;
    const int rc = file_size(fh, &bytes);
    if (!rc)
        *size = bytes;
    return rc;
}

/* Returns a new handle of a derived type, which the user must free. */
static MPI_Datatype return_type_handle(struct dtype *t)
{
    if (!t->obj.predefined) {
        t->handles++;
        dtype_retain(t);
    }
    return dtype_handle(t);
}

int impl_File_get_view(struct file *fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype,
                       char *datarep)
{
    *disp = fh->view.disp;
    *etype = return_type_handle(fh->view.etype);
    *filetype = return_type_handle(fh->view.filetype);
    strcpy(datarep, fh->view.rep->name);
    return 0;
}

int impl_File_get_byte_offset(struct file *fh, MPI_Offset offset, MPI_Offset *disp)
{
    if (offset < 0)
        return err_set(MPI_ERR_ARG, "%s: offset is %lld, which is negative", fh->name, (long long)offset);
    if (fh->view.tile->size == 0)
        return err_set(MPI_ERR_TYPE, "%s: the filetype of the view has no data, so no offset has a place",
                       fh->name);
    int64_t position;
    if (!checked_mul(offset, fh->view.unit, &position) || !view_fits(&fh->view, (uint64_t)position, 1))
        return err_set(MPI_ERR_ARG, "%s: the offset %lld is beyond the largest offset of a file", fh->name,
                       (long long)offset);
    *disp = view_offset(&fh->view, (uint64_t)position);
    return 0;
}

int impl_File_seek(struct file *fh, MPI_Offset offset, int whence)
{
    const int rc = file_check_random(fh);
    return rc ? rc : file_seek(fh, fh->position, offset, whence, &fh->position);
}

int impl_File_get_position(struct file *fh, MPI_Offset *offset)
{
    const int rc = file_check_random(fh);
    if (!rc)
        *offset = fh->position;
    return rc;
}

/* Collective: no rank may use the pointer while it is changed. */
int impl_File_seek_shared(struct file *fh, MPI_Offset offset, int whence)
{
    int64_t from = 0, to = 0;
    const int64_t same[2] = {offset, whence};
    int rc = file_check_random(fh);
    if (!rc)
        rc = agree_check_equal(fh->comm, fh->name, "offset or whence", same, 2);
    if (rc)
        return rc;
    if (fh->comm->rank == 0) {
        rc = pointer_fetch_and_add(fh, 0, &from);
        if (!rc)
            rc = file_seek(fh, from, offset, whence, &to);
        if (!rc)
            rc = pointer_set(fh, to);
    }
    return agree_error(fh->comm, fh->name, rc);
}

int impl_File_get_position_shared(struct file *fh, MPI_Offset *offset)
{
    int64_t at = 0;
    int rc = file_check_random(fh);
    if (!rc)
        rc = pointer_fetch_and_add(fh, 0, &at);
    if (!rc)
        *offset = at;
    return rc;
}

static int register_datarep(struct datarep *rep, const char *name, MPI_Datarep_extent_function *extent,
                            void *extra)
{
    if (strlen(name) >= sizeof(rep->name))
        return err_set(MPI_ERR_ARG, "the name of a data representation has at most %zu characters",
                       sizeof(rep->name) - 1);
    strcpy(rep->name, name);
    rep->kind = DATAREP_USER;
    rep->extent = extent;
    rep->extra = extra;
    return datarep_register(rep);
}

int impl_Register_datarep(const char *datarep, MPI_Datarep_conversion_function *read_conversion_fn,
                          MPI_Datarep_conversion_function *write_conversion_fn,
                          MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state)
{
    struct datarep rep = {.read.small = read_conversion_fn, .write.small = write_conversion_fn};
    return register_datarep(&rep, datarep, dtype_file_extent_fn, extra_state);
}

int impl_Register_datarep_c(const char *datarep, MPI_Datarep_conversion_function_c *read_conversion_fn,
                            MPI_Datarep_conversion_function_c *write_conversion_fn,
                            MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state)
{
    struct datarep rep = {
        .read.large = read_conversion_fn, .write.large = write_conversion_fn, .large = true};
    return register_datarep(&rep, datarep, dtype_file_extent_fn, extra_state);
}
