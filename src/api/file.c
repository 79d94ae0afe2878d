/* file.c: files as objects: opening and closing, queries and settings, file pointers and data
 * representations.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/file.h"
#include "api/file.h"

#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "api/enter.h"
#include "api/forward.h"
#include "base/checked.h"
#include "impl.h"
#include "io/access.h"
#include "io/same_call.h"
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

/* The steps of a read or write: check the mode, find the position, perform or start the access. */

static int check_mode(const struct file_call *call)
{
    const struct file *f = call->file;
    if (call->write && !file_writes(f))
        return err_set(MPI_ERR_READ_ONLY, "%s was opened with MPI_MODE_RDONLY", f->name);
    if (!call->write && !file_reads(f))
        return err_set(MPI_ERR_ACCESS, "%s was opened with MPI_MODE_WRONLY", f->name);
    return call->place == AT_OFFSET || call->place == AT_POINTER ? file_check_random(f) : 0;
}

/* Refuses other collective accesses between begin and end of a split one (MPI-5.0, 14.4.5). All ranks have
 * begun the split operation, so all ranks refuse the call and none waits. */
static int check_split(const struct file_call *call)
{
    if (!call->all || call->file->split == SPLIT_NONE)
        return 0;
    return err_set(MPI_ERR_OTHER, "%s: a split collective operation is under way; end it first",
                   call->file->name);
}

static int count_etypes(const struct file_call *call, int64_t *etypes)
{
    const struct file *f = call->file;
    int64_t size = 0, bytes;
    int rc = datarep_file_size(f->view.rep, call->type, &size);
    if (rc)
        return rc;
    if (!checked_mul(call->count, size, &bytes))
        return err_set(MPI_ERR_COUNT, "%s: %lld elements of %lld bytes are more than a file can have",
                       f->name, (long long)call->count, (long long)size);
    *etypes = bytes / f->view.unit;
    if (bytes % f->view.unit != 0)
        return err_set(MPI_ERR_IO, "%s: %lld bytes are not a whole number of etypes (%lld bytes each)",
                       f->name, (long long)bytes, (long long)f->view.unit);
    return 0;
}

/* The offset of this rank's part in an ordered access, rank after rank from the shared pointer on. A rank whose call
 * is wrong (`rc`) takes part without data. */
static int ordered_offset(struct file *f, int rc, int64_t etypes, int64_t *offset)
{
    const struct comm *c = f->comm;
    int64_t *all = calloc((size_t)c->size, sizeof(*all));
    int64_t before = 0, base = 0, sum = 0;
    CHECK_MEMORY(all, "an ordered file operation");
    int failed = agree_gather(f->comm, rc ? 0 : etypes, all);
    for (int r = 0; r < c->size; r++) {
        before = r == c->rank ? sum : before;
        if (!failed && !checked_add(sum, all[r], &sum))
            failed = err_set(MPI_ERR_ARG, "%s: all ranks together move the pointer by more than 2^63 etypes",
                             f->name);
    }
    free(all);
    if (!failed && c->rank == 0)
        failed = pointer_fetch_and_add(f, sum, &base);
    failed = agree_error(f->comm, f->name, failed);
    if (!failed)
        failed = agree_bcast(f->comm, &base, sizeof(base));
    *offset = base + before;
    return rc ? rc : failed;
}

/* Finds the first etype of the access and advances the file pointer that it uses. */
static int find_access_offset(const struct file_call *call, int rc, int64_t etypes, int64_t *offset)
{
    struct file *f = call->file;
    if (call->place == AT_ORDERED)
        return ordered_offset(f, rc, etypes, offset);
    if (rc)
        return rc;
    int64_t after;
    switch (call->place) {
    case AT_POINTER:
        if (!checked_add(f->position, etypes, &after))
            return err_set(MPI_ERR_ARG, "%s: the file pointer would be beyond the largest offset", f->name);
        *offset = f->position;
        f->position = after;
        return 0;
    case AT_SHARED:
        return pointer_fetch_and_add(f, etypes, offset);
    default:
        *offset = call->offset;
        return 0;
    }
}

static int file_call_prepare(const struct file_call *call, struct access *a)
{
    int64_t etypes = 0, offset = 0;
    int rc = check_mode(call);
    if (!rc)
        rc = count_etypes(call, &etypes);
    rc = find_access_offset(call, rc, etypes, &offset);
    if (!rc)
        return access_open(a, call->file, call->write, call->buf, call->count, call->type, offset);
    access_init_empty(a, call->file, call->write, call->type);
    return rc;
}

static void set_status(MPI_Status *status, MPI_Count bytes)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    status_set_bytes(status, bytes);
    status_set_cancelled(status, false);
}

int file_call_run(const struct file_call *call, MPI_Status *status)
{
    struct access a;
    MPI_Count bytes = 0;
    int rc = check_split(call);
    if (rc)
        return rc;
    rc = file_call_prepare(call, &a);
    if (call->all) {
        rc = io_op_run(&a, rc, &bytes);
    } else {
        if (!rc)
            rc = access_transfer(&a);
        rc = access_close(&a, rc, &bytes);
    }
    set_status(status, bytes);
    return rc;
}

int file_call_start(const struct file_call *call, MPI_Request *request)
{
    struct access a;
    struct request *r;
    int rc = check_split(call);
    if (rc)
        return rc;
    rc = file_call_prepare(call, &a);
    if (call->all) {
        rc = io_op_start(&a, rc, &r);
    } else if (rc) { /* nothing was begun: the call itself fails */
        MPI_Count bytes;
        rc = access_close(&a, rc, &bytes);
    } else {
        rc = io_op_create_complete(&a, access_transfer(&a), &r);
    }
    if (!rc)
        *request = request_handle(r);
    return rc;
}

int file_call_begin(const struct file_call *call, enum io_split split)
{
    struct file *f = call->file;
    struct access a;
    struct request *r;
    int rc = check_split(call);
    if (rc)
        return rc;
    rc = file_call_prepare(call, &a);
    rc = io_op_start(&a, rc, &r);
    if (rc)
        return rc;
    f->split = split;
    f->split_op = container_of(r, struct io_op, base);
    return 0;
}

int file_call_end(struct file *f, enum io_split split, MPI_Status *status)
{
    if (f->split != split)
        return err_set(MPI_ERR_OTHER, "%s: no split collective operation of this kind was begun", f->name);
    struct request *r = &f->split_op->base;
    const int rc = p2p_wait(f->comm->proc->p2p, r);
    set_status(status, r->bytes);
    f->split = SPLIT_NONE;
    f->split_op = NULL;
    request_free(r);
    return rc;
}
