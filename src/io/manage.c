/* manage.c: operations on a whole file or its handle: size, view, atomic mode, hints. All of them are
 * collective except queries.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file.h"
#include "base/checked.h"
#include "base/hash.h"
#include "io/same_call.h"
#include "io/datarep.h"
#include "io/posix.h"
#include "io/pointer.h"
#include "io/nfs.h"
#include "dt/number.h"

/* Detects whether the views of all ranks of a file together cover each byte once. The holes of a rank's view
 * then belong to the views of other ranks, and a rank may read a hole and write it back unchanged under a
 * lock that all writers acquire. */

enum { TILE_DISP, TILE_EXTENT, TILE_SUM, TILE_WORDS };

#define PRIME (((uint64_t)1 << 61) - 1)
#define BASE  0x11d0e9c3a6b5f27u /* z, an arbitrary number below PRIME */
/* Limit of the pieces of a tile; views with more pieces are not checked. */
#define PIECES_MAX 4096

static uint64_t tiles_multiply(uint64_t a, uint64_t b)
{
    const num_u128 product = (num_u128)a * b;
    const uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

static uint64_t compute_power_modulo(uint64_t exponent)
{
    uint64_t result = 1;
    for (uint64_t base = BASE; exponent > 0; exponent >>= 1, base = tiles_multiply(base, base))
        if (exponent & 1)
            result = tiles_multiply(result, base);
    return result;
}

static uint64_t tiles_add(uint64_t a, uint64_t b)
{
    return (a + b) % PRIME;
}

static uint64_t tiles_range_sum(uint64_t from, uint64_t to)
{
    return tiles_add(compute_power_modulo(to), PRIME - compute_power_modulo(from));
}

/* Returns the contribution of piece [at, at + n) to the sum. The piece may continue in the next period. */
static uint64_t piece_range_sum(uint64_t at, uint64_t n, uint64_t period)
{
    at %= period;
    return at + n <= period ? tiles_range_sum(at, at + n)
                            : tiles_add(tiles_range_sum(at, period), tiles_range_sum(0, at + n - period));
}

/* Describes the cover of a view of this rank. Returns false if tiles_agree does not support such views. */
static bool tiles_describe_view(const struct file *f, const struct view *v, int64_t out[TILE_WORDS])
{
    const struct dtype *tile = v->tile;
    struct dt_cursor c;
    void *piece;
    size_t n;
    uint64_t sum = 0;
    if (f->comm->size == 1 || !file_writes(f) || !file_reads(f) || !f->guards || v->contiguous ||
        tile->size == 0 || !v->sorted || tile->true_lb + tile->true_extent > tile->extent)
        return false;
    dt_cursor_open(&c, v->tile, 1, NULL);
    for (int i = 0; (n = dt_cursor_next(&c, SIZE_MAX / 2, &piece)) > 0; i++) {
        if (i == PIECES_MAX)
            return false;
        sum =
            tiles_add(sum, piece_range_sum((uint64_t)v->disp + (uintptr_t)piece, n, (uint64_t)tile->extent));
    }
    out[TILE_DISP] = v->disp;
    out[TILE_EXTENT] = tile->extent;
    out[TILE_SUM] = (int64_t)sum;
    return true;
}

/* Collective; called after the view was set, if tiles_describe_view returned true at all ranks. Sets
 * f->view.tiled_from to the offset from which the views of all ranks together cover every byte of the file,
 * or INT64_MAX. */
static int tiles_agree(struct file *f, const int64_t mine[TILE_WORDS])
{
    const int ranks = f->comm->size;
    int64_t from = 0;
    struct coll_args args;
    uint64_t sum = 0;
    int64_t *all = malloc((size_t)ranks * TILE_WORDS * sizeof(*all));
    CHECK_MEMORY(all, "the views of a file");
    agree_args_gather(&args, f->comm, mine, all, TILE_WORDS);
    const int rc = agree_map_failure(f->comm, f->name, coll_run(&args));
    bool tiled = !rc;
    for (int r = 0; tiled && r < ranks; r++) {
        const int64_t *other = all + (size_t)r * TILE_WORDS;
        tiled = other[TILE_EXTENT] == all[TILE_EXTENT];
        sum = tiles_add(sum, (uint64_t)other[TILE_SUM]);
        from = MAX(from, other[TILE_DISP]);
    }
    if (tiled && sum == tiles_range_sum(0, (uint64_t)all[TILE_EXTENT]))
        f->view.tiled_from = from;
    free(all);
    return rc;
}

int file_size(struct file *f, int64_t *size)
{
    struct stat st;
    nfs_refresh(f); /* an NFS client caches sizes for seconds */
    if (fstat(f->fd, &st) != 0)
        return posix_error(f->name, "querying the size (fstat)", errno);
    *size = st.st_size;
    return 0;
}

int file_check_random(const struct file *f)
{
    if (!(f->amode & MPI_MODE_SEQUENTIAL))
        return 0;
    return err_set(MPI_ERR_UNSUPPORTED_OPERATION,
                   "%s was opened with MPI_MODE_SEQUENTIAL: it can be read or written by shared and ordered "
                   "access only, from start to end",
                   f->name);
}

/* Collective. The mode and, after the comparison, the size are equal at all ranks, so that all ranks
 * return the same error. */
static int check_size(struct file *f, int64_t size)
{
    int rc = file_check_random(f);
    if (rc)
        return rc;
    rc = agree_check_equal(f->comm, f->name, "size", &size, 1);
    if (!rc && size < 0)
        rc = err_set(MPI_ERR_ARG, "%s: the size %lld is negative", f->name, (long long)size);
    if (!rc && !file_writes(f))
        rc = err_set(MPI_ERR_READ_ONLY, "%s is open for reading only", f->name);
    return rc;
}

/* No rank returns before rank 0 has changed the size. */
int file_set_size(struct file *f, int64_t size)
{
    int rc = check_size(f, size);
    if (rc)
        return rc;
    if (f->comm->rank == 0 && ftruncate(f->fd, size) != 0)
        rc = posix_error(f->name, "changing the size", errno);
    rc = agree_error(f->comm, f->name, rc);
    nfs_refresh(f);
    return rc;
}

int file_preallocate(struct file *f, int64_t size)
{
    int rc = check_size(f, size);
    if (rc)
        return rc;
    if (f->comm->rank == 0 && size > 0) {
        const int error = posix_fallocate(f->fd, 0, size);
        if (error)
            rc = posix_error(f->name, "reserving space", error);
    }
    rc = agree_error(f->comm, f->name, rc);
    nfs_refresh(f);
    return rc;
}

int file_sync(struct file *f)
{
    int rc = 0;
    if (file_writes(f) && fsync(f->fd) != 0 && errno != EINVAL && errno != EROFS)
        rc = posix_error(f->name, "writing to disk (fsync)", errno);
    rc = agree_error(f->comm, f->name, rc);
    nfs_refresh(f); /* invalidates cached pages after all ranks have flushed theirs */
    return rc;
}

/* Acquires a lock as a test: on a file system without locks atomic mode returns an error. */
int file_set_atomicity(struct file *f, bool atomic)
{
    const int64_t same = atomic;
    int rc = agree_check_equal(f->comm, f->name, "flag", &same, 1);
    if (rc)
        return rc;
    if (atomic) {
        rc = posix_lock(f, file_writes(f) && !file_reads(f), 0, 1);
        if (!rc)
            posix_unlock(f, 0, 1);
    }
    rc = agree_error(f->comm, f->name, rc);
    if (!rc)
        f->atomic = atomic;
    return rc;
}

static int resolve_displacement(struct file *f, int64_t *disp)
{
    int64_t at = 0;
    if (!(f->amode & MPI_MODE_SEQUENTIAL)) {
        if (*disp == MPI_DISPLACEMENT_CURRENT)
            return err_set(MPI_ERR_ARG, "%s: MPI_DISPLACEMENT_CURRENT needs MPI_MODE_SEQUENTIAL", f->name);
        return *disp < 0
                   ? err_set(MPI_ERR_ARG, "%s: disp is %lld, which is negative", f->name, (long long)*disp)
                   : 0;
    }
    if (*disp != MPI_DISPLACEMENT_CURRENT)
        return err_set(MPI_ERR_ARG, "%s: with MPI_MODE_SEQUENTIAL disp must be MPI_DISPLACEMENT_CURRENT",
                       f->name);
    const int rc = pointer_fetch_and_add(f, 0, &at);
    if (rc)
        return rc;
    int64_t position;
    if (!checked_mul(at, f->view.unit, &position) || !view_fits(&f->view, (uint64_t)position, 1))
        return err_set(MPI_ERR_ARG, "%s: the shared file pointer is beyond the largest offset of a file",
                       f->name);
    *disp = view_offset(&f->view, (uint64_t)position);
    return 0;
}

static int make_view(struct file *f, int64_t disp, struct dtype *etype, struct dtype *filetype,
                     const char *datarep, struct view *v)
{
    const struct datarep *rep = datarep_find(datarep);
    if (!rep)
        return err_set(
            MPI_ERR_UNSUPPORTED_DATAREP,
            "%s: no data representation is called '%.60s'; there are native, internal, external32 and "
            "those registered with MPI_Register_datarep",
            f->name, datarep);
    int rc = resolve_displacement(f, &disp);
    if (rc)
        return rc;
    rc = view_make(v, disp, etype, filetype, rep, file_writes(f));
    return rc ? err_set(rc, "%s: %s", f->name, err_detail(rc)) : 0;
}

/* All ranks use rank 0's hints: aggregators and buffer sizes must be equal. */
int file_set_info(struct file *f, struct info *info)
{
    io_hints_apply(&f->hints, info, false);
    return agree_bcast(f->comm, &f->hints, sizeof(f->hints));
}

int file_set_view(struct file *f, int64_t disp, struct dtype *etype, struct dtype *filetype,
                  const char *datarep, struct info *info)
{
    struct view v = {0};
    struct io_hints hints = f->hints;
    int64_t cover[TILE_WORDS];
    int rc = make_view(f, disp, etype, filetype, datarep, &v);
    io_hints_apply(&hints, info, false);
    const int64_t same[2] = {(int64_t)hash_text(HASH_START, datarep), rc ? 0 : v.unit};
    enum { HINTS_CHANGE, NOT_TILED, QUESTIONS };
    int64_t any[QUESTIONS] = {[HINTS_CHANGE] =
                                  f->comm->rank == 0 && memcmp(&hints, &f->hints, sizeof(hints)) != 0,
                              [NOT_TILED] = rc || !tiles_describe_view(f, &v, cover)};
    rc = agree_all(f->comm, f->name, rc, "datarep or etype", same, 2, any, QUESTIONS);
    if (rc) {
        view_release(&v);
        return rc;
    }
    view_release(&f->view);
    f->view = v;
    f->position = 0;
    if (any[HINTS_CHANGE])
        rc = file_set_info(f, info);
    if (rc)
        return rc;
    /* Every rank has called this function, and none returns before the next collective. */
    pointer_restart(f, 0);
    return any[NOT_TILED] || f->hints.ds_write == IO_DISABLE ? agree_error(f->comm, f->name, 0)
                                                             : tiles_agree(f, cover);
}

/* The offset of the first etype of the view behind the end of the file. */
static int file_end_in_etypes(struct file *f, int64_t *end)
{
    int64_t size = 0;
    const int rc = file_size(f, &size);
    if (rc)
        return rc;
    const uint64_t bytes = view_bytes_before(&f->view, size), unit = (uint64_t)f->view.unit;
    *end = (int64_t)((bytes + unit - 1) / unit);
    return 0;
}

int file_seek(struct file *f, int64_t from, int64_t offset, int whence, int64_t *to)
{
    int64_t base = 0;
    int rc = 0;
    if (whence == MPI_SEEK_CUR)
        base = from;
    else if (whence == MPI_SEEK_END)
        rc = file_end_in_etypes(f, &base);
    else if (whence != MPI_SEEK_SET)
        rc = err_set(MPI_ERR_ARG, "%s: whence is %d; it must be MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END",
                     f->name, whence);
    if (rc)
        return rc;
    int64_t place;
    if (!checked_add(base, offset, &place))
        return err_set(MPI_ERR_ARG, "%s: the offset %lld is beyond the largest offset of a file", f->name,
                       (long long)offset);
    if (place < 0)
        return err_set(MPI_ERR_ARG, "%s: the pointer would be before the start of the view (%lld)", f->name,
                       (long long)place);
    *to = place;
    return 0;
}
