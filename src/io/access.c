/* access.c: independent access. Data that is contiguous in memory and in the file takes one system call.
 * Data that is not contiguous in memory takes a list of pieces (preadv, pwritev), or a buffer if the
 * pieces are small. A read covers small holes of the file, too (data sieving).
 *
 * Writes of small pieces with small holes: if the views of all ranks together cover the file (manage.c), a
 * range is read, modified and written under a lock; else the pieces are written through a mapping if the
 * file system allows it (mapped.h). Holes that are in no view are not written unless the hint
 * romio_ds_write requires it: a concurrent write of another process into the hole would be lost.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/access.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "dt/device_pack.h"
#include "io/datarep.h"
#include "io/mapped.h"
#include "io/posix.h"
#include "io/nfs.h"

/* Pieces of memory of at least this size are transferred by an entry in a list; smaller pieces are copied
 * into a buffer. */
#define LIST_PIECE_MIN 2048
#define LIST_MAX       256
/* The sizes below compare the cost of a system call (and of the file system's work in it) with that of
 * copying bytes. Both depend on the speed of the processor, so that the ratio differs between machines by
 * a factor of two at most, and at these limits the cost of both methods is about equal. Hints override the
 * limits: romio_ds_read, romio_ds_write, fishplate_map.
 *
 * Reading a smaller hole costs less than one more system call: 0.3 to 0.5 us, in which 4 KiB are copied. */
#define HOLE_WORTH_READING 4096
/* Copying smaller pieces into a mapping costs less than writing them by system calls. The limit is a page:
 * the cost of a mapping (populating a page, its page-table entry) does not depend on the bytes that are
 * written to the page. */
#define PIECE_WORTH_MAPPING 4096
/* Reading, modifying and writing smaller pieces and holes costs less than a system call for each piece. A
 * write acquires a lock of the file in the kernel and a journal entry, which cost as much as copying 16
 * KiB. Measured on ext4, 2 to 8 ranks, in MB/s with and without read-modify-write: pieces of 4 KiB with
 * holes of 12 KiB 1823 and 655; pieces and holes of 16 KiB 1646 and 3149. */
#define PIECE_WORTH_REWRITING (16 << 10)
#define HOLE_WORTH_REWRITING  (16 << 10)
/* Batches of fewer bytes are written by system calls, even if these must wait for another rank. */
#define BATCH_WORTH_MAPPING (16 << 10)
/* Number of pieces from which a mapping or a lock costs less than a system call for each piece. */
#define PIECES_WORTH_JOINING 16

static int report_no_buffer(const struct file *f, uint64_t bytes)
{
    return err_set(MPI_ERR_NO_MEM, "%s: out of memory for a buffer of %llu bytes", f->name,
                   (unsigned long long)bytes);
}

/* Replaces a buffer in GPU memory by a copy in host memory with the same layout. */
static int use_host_copy(struct access *a)
{
    MPI_Aint gap;
    a->copy_size = (size_t)dt_span(a->type, a->count, &gap);
    a->copy = gpu_get_buffer(a->copy_size);
    if (!a->copy)
        return report_no_buffer(a->file, a->copy_size);
    a->device = a->buf;
    a->buf = ptr_add(a->copy, -gap);
    return a->write ? dt_copy(a->device, a->count, a->type, a->buf, a->count, a->type) : 0;
}

/* Copies the first `bytes` bytes of the data, which were read, from the host copy to the user's buffer in
 * GPU memory. */
static int copy_to_device(struct access *a, MPI_Count bytes)
{
    struct dt_cursor from, to;
    char *window = gpu_get_staging();
    if (!window)
        return report_no_buffer(a->file, GPU_STAGING_SIZE);
    dt_cursor_init(&from, a->type, a->count, a->buf);
    dt_cursor_init(&to, a->type, a->count, a->device);
    for (MPI_Count left = bytes; left > 0 && !to.error;
         left -= (MPI_Count)MIN(left, (MPI_Count)GPU_STAGING_SIZE)) {
        const size_t n = MIN((size_t)left, GPU_STAGING_SIZE);
        dt_cursor_pack(&from, window, n);
        dt_cursor_unpack(&to, window, n);
    }
    gpu_put_staging(window);
    return to.error;
}

int access_open(struct access *a, struct file *f, bool write, void *buf, MPI_Count count, struct dtype *type,
                int64_t offset)
{
    int64_t size = 0;
    *a = (struct access){.file = f, .write = write, .buf = buf, .count = count, .type = type};
    dtype_retain(type);
    view_copy(&f->view, &a->view);
    if (offset < 0)
        return err_set(MPI_ERR_ARG, "%s: the offset %lld is negative", f->name, (long long)offset);
    int rc = datarep_file_size(f->view.rep, type, &size);
    if (rc)
        return rc;
    int64_t start, length;
    if (!checked_mul(offset, f->view.unit, &start) || !checked_mul(count, size, &length) ||
        !view_fits(&f->view, (uint64_t)start, (uint64_t)length))
        return err_set(
            MPI_ERR_ARG,
            "%s: %lld elements from the offset %lld end beyond the largest offset of a file (2^63 - 1)",
            f->name, (long long)count, (long long)offset);
    a->start = (uint64_t)start;
    a->length = (uint64_t)length;
    if (f->view.tile->size == 0 && a->length > 0) {
        a->length = 0;
        return err_set(MPI_ERR_TYPE, "%s: the filetype of the view has no data, so nothing can be accessed",
                       f->name);
    }
    if (a->length > 0 && dt_is_device(buf, count, type))
        rc = use_host_copy(a);
    if (!rc && datarep_converts(f->view.rep) && a->length > 0) {
        a->converted = malloc(a->length);
        if (!a->converted)
            rc = report_no_buffer(f, a->length);
        else if (write)
            rc = datarep_pack(f->comm->proc, f->view.rep, type, count, a->buf, a->converted, a->length);
    }
    if (rc)
        a->length = 0;
    return rc;
}

void access_init_empty(struct access *a, struct file *f, bool write, struct dtype *type)
{
    *a = (struct access){.file = f, .write = write, .type = type};
    dtype_retain(type);
    view_copy(&f->view, &a->view);
}

int access_close(struct access *a, int rc, MPI_Count *bytes)
{
    *bytes = (MPI_Count)a->moved;
    if (a->converted && !a->write && a->moved > 0) {
        const int failed = datarep_unpack(a->file->comm->proc, a->view.rep, a->type, a->count, a->buf,
                                          a->converted, a->length, a->moved, bytes);
        rc = rc ? rc : failed;
    } else if (a->converted && a->moved == a->length) {
        *bytes = a->count * a->type->size;
    }
    if (a->device && !a->write && *bytes > 0) {
        const int failed = copy_to_device(a, *bytes);
        rc = rc ? rc : failed;
    }
    if (a->copy)
        gpu_put_buffer(a->copy, a->copy_size);
    free(a->converted);
    dtype_release(a->type);
    view_release(&a->view);
    return rc;
}

void access_memory(const struct access *a, struct dt_cursor *c)
{
    if (a->converted)
        dt_cursor_init(c, dtype_from_handle(MPI_BYTE), (MPI_Count)a->length, a->converted);
    else
        dt_cursor_init(c, a->type, a->count, a->buf);
}

bool access_is_block(const struct access *a, char **at)
{
    MPI_Aint gap = 0;
    *at = a->converted;
    if (a->converted)
        return true;
    const bool block = dt_is_contiguous_block(a->type, a->count, &gap);
    *at = ptr_add(a->buf, gap);
    return block;
}

struct transfer {
    struct access *a;
    struct view_walk places; /* iterator over the pieces in the file that remain */
    struct dt_cursor memory; /* cursor over the memory that remains, unless the memory is one block */
    char *block;             /* the memory if it is one block, else NULL */
    bool small;              /* pieces of memory are copied through `buffer`, not listed */
    bool sieves;             /* holes of the file may be read or rewritten */
    int64_t fence;           /* file offset that no batch crosses */
    uint64_t batch_limit;    /* limit of the bytes of a batch */
    int64_t reach;           /* end of the access in the file; 0: not known */
    bool touched;            /* a batch was written through a mapping */
    char *buffer;            /* allocated when first needed */
    size_t buffer_size;
};

static int allocate_buffer(struct transfer *t)
{
    const struct io_hints *h = &t->a->file->hints;
    const uint64_t size = (uint64_t)(t->a->write ? h->ind_wr_buffer_size : h->ind_rd_buffer_size);
    if (t->buffer)
        return 0;
    t->buffer_size = t->sieves ? size : MIN(size, t->a->length);
    t->buffer = malloc(t->buffer_size);
    return t->buffer ? 0 : report_no_buffer(t->a->file, t->buffer_size);
}

/* Moves `len` bytes between one place of the file and user memory through the intermediate buffer. */
static int move_through_buffer(struct transfer *t, int64_t offset, uint64_t len)
{
    struct access *a = t->a;
    int rc = allocate_buffer(t);
    while (len > 0 && !rc) {
        const size_t n = MIN(len, t->buffer_size);
        size_t done = 0;
        if (a->write)
            dt_cursor_pack(&t->memory, t->buffer, n);
        rc = posix_transfer(a->file, a->write, t->buffer, n, offset, &done);
        if (!a->write)
            dt_cursor_unpack(&t->memory, t->buffer, done);
        a->moved += done;
        if (done < n)
            return rc ? rc : ERR_AGAIN; /* the end of the file */
        offset += (int64_t)n;
        len -= n;
    }
    return rc;
}

/* Moves `len` bytes between one place of the file and the pieces of user memory, which preadv and pwritev
 * get as a list. */
static int move_with_iovec(struct transfer *t, int64_t offset, uint64_t len)
{
    struct access *a = t->a;
    while (len > 0) {
        struct iovec list[LIST_MAX];
        uint64_t sum = 0;
        size_t done = 0;
        int n = 0;
        for (; n < LIST_MAX && sum < len; n++) {
            list[n].iov_len = dt_cursor_next(&t->memory, len - sum, &list[n].iov_base);
            sum += list[n].iov_len;
        }
        const int rc = posix_transfer_list(a->file, a->write, list, n, offset, &done);
        a->moved += done;
        if (rc || done < sum)
            return rc ? rc : ERR_AGAIN;
        offset += (int64_t)sum;
        len -= sum;
    }
    return 0;
}

static int move_piece(struct transfer *t, int64_t offset, uint64_t len)
{
    struct access *a = t->a;
    if (!t->block)
        return t->small ? move_through_buffer(t, offset, len) : move_with_iovec(t, offset, len);
    size_t done = 0;
    const int rc = posix_transfer(a->file, a->write, t->block + a->moved, len, offset, &done);
    a->moved += done;
    return rc ? rc : done < len ? ERR_AGAIN : 0;
}

/* Pieces of the file that are accessed together. */
struct batch {
    int64_t from, to; /* file offsets of the first byte and behind the last one */
    uint64_t bytes;   /* bytes of all pieces */
    int pieces;
    struct view_walk places; /* positioned at the first piece */
};

/* Collects the next pieces of the file view that lie within `span` bytes. A piece longer than `span` is a
 * batch of its own. No batch crosses t->fence or has more than t->batch_limit bytes. */
static void batch_collect_pieces(struct transfer *t, struct batch *b, uint64_t span)
{
    int64_t at = 0;
    uint64_t n;
    *b = (struct batch){.places = t->places};
    for (;;) {
        struct view_walk before = t->places;
        n = view_walk_next(&t->places, b->pieces == 0 ? t->batch_limit : MIN(span, t->batch_limit - b->bytes),
                           &at);
        if (n == 0)
            return;
        if (b->pieces > 0 && (at < b->to || at + (int64_t)n - b->from > (int64_t)span ||
                              (at >= t->fence && b->from < t->fence))) {
            t->places = before;
            return;
        }
        if (b->pieces++ == 0)
            b->from = at;
        b->to = at + (int64_t)n;
        b->bytes += n;
    }
}

/* True if the gaps between the pieces are so short that reading and writing them too is cheaper than one
 * access for each piece. */
static bool batch_is_dense(const struct batch *b, enum io_choice choice)
{
    const uint64_t holes = (uint64_t)(b->to - b->from) - b->bytes;
    return b->pieces > 1 && choice != IO_DISABLE &&
           (choice == IO_ENABLE || holes / (uint64_t)(b->pieces - 1) < HOLE_WORTH_READING);
}

/* Copies the pieces of the batch between user memory and `base`, an image of the file that starts at
 * b->from and has `have` bytes. */
static void batch_copy(struct transfer *t, const struct batch *b, char *base, uint64_t have)
{
    struct access *a = t->a;
    struct view_walk w = b->places;
    uint64_t left = b->bytes, n;
    int64_t at = 0;
    while (left > 0 && (n = view_walk_next(&w, left, &at)) > 0) {
        char *in = base + (at - b->from);
        const uint64_t there = (uint64_t)(at - b->from) < have ? MIN(n, have - (uint64_t)(at - b->from)) : 0;
        if (t->block && a->write)
            memcpy(in, t->block + a->moved, there);
        else if (t->block)
            memcpy(t->block + a->moved, in, there);
        else if (a->write)
            dt_cursor_pack(&t->memory, in, there);
        else
            dt_cursor_unpack(&t->memory, in, there);
        a->moved += there;
        left -= n;
        if (there < n)
            return;
    }
}

static int sieve_read(struct transfer *t, const struct batch *b)
{
    const uint64_t span = (uint64_t)(b->to - b->from);
    size_t done = 0;
    const int rc = posix_transfer(t->a->file, false, t->buffer, span, b->from, &done);
    batch_copy(t, b, t->buffer, done);
    return rc ? rc : done < span ? ERR_AGAIN : 0;
}

static int move_batch(struct transfer *t, const struct batch *b)
{
    struct view_walk w = b->places;
    uint64_t left = b->bytes, n;
    int64_t at = 0;
    int rc = 0;
    while (left > 0 && !rc && (n = view_walk_next(&w, left, &at)) > 0) {
        rc = move_piece(t, at, n);
        left -= n;
    }
    return rc;
}

/* Reads, modifies and writes the range of the batch. The caller holds an exclusive lock of the range; all
 * writers of this file acquire one. */
static int sieve_write(struct transfer *t, const struct batch *b)
{
    const uint64_t span = (uint64_t)(b->to - b->from), before = t->a->moved;
    size_t done = 0;
    int rc = posix_transfer(t->a->file, false, t->buffer, span, b->from, &done);
    if (rc) /* the unreadable bytes may lie in a hole: write the pieces alone */
        return move_batch(t, b);
    memset(t->buffer + done, 0, span - done);
    batch_copy(t, b, t->buffer, span);
    rc = posix_transfer(t->a->file, true, t->buffer, span, b->from, &done);
    if (rc) /* count the bytes of the pieces that were written */
        t->a->moved = view_offset_to_position(&t->a->view, t->a->start + before, t->a->start + t->a->moved,
                                              b->from + (int64_t)done) -
                      t->a->start;
    return rc;
}

/* True if a batch has many pieces, shorter than `piece` on average, with holes shorter than `hole` between
 * them. */
static bool batch_has_small_pieces(const struct batch *b, uint64_t piece, uint64_t hole)
{
    const uint64_t pieces = (uint64_t)b->pieces, holes = (uint64_t)(b->to - b->from) - b->bytes;
    return pieces >= PIECES_WORTH_JOINING && b->bytes / pieces < piece && holes / (pieces - 1) < hole;
}

/* True if the holes of this batch should be rewritten with the pieces. All bytes of the holes belong to
 * views of other ranks of this file. */
static bool batch_should_rewrite_gaps(const struct transfer *t, const struct batch *b)
{
    return b->from >= t->a->view.tiled_from &&
           batch_has_small_pieces(b, PIECE_WORTH_REWRITING, HOLE_WORTH_REWRITING);
}

/* Populates the pages of every piece, but no other page of the holes. */
static bool prefault_pieces(const struct mapped *m, const struct batch *b)
{
    struct view_walk w = b->places;
    uint64_t left = b->bytes, n;
    int64_t at = 0;
    while (left > 0 && (n = view_walk_next(&w, left, &at)) > 0) {
        if (!mapped_prefault(m, (uint64_t)(at - b->from), n))
            return false;
        left -= n;
    }
    return true;
}

/* Writes the batch through a mapping of the file. holes: one call populates the pages of pieces and holes.
 * Returns false if the batch must be written by system calls instead. */
static bool write_mapped(struct transfer *t, const struct batch *b, bool holes)
{
    struct mapped m;
    const struct dt_cursor memory = t->memory;
    const uint64_t span = (uint64_t)(b->to - b->from), moved = t->a->moved;
    if (!mapped_open(&m, t->a->file, b->from, b->to, MAX(b->to, t->reach)))
        return false;
    bool done = holes ? mapped_prefault(&m, 0, span) : prefault_pieces(&m, b);
    if (done) {
        bus_watch_begin(&m.watch);
        batch_copy(t, b, m.base, span);
        done = bus_watch_end(&m.watch);
        t->touched = true;
    }
    mapped_close(&m);
    if (!done) {
        t->memory = memory;
        t->a->moved = moved;
    }
    return done;
}

/* Writes one batch while other ranks of the node write, too. On tmpfs the rank that has the turn uses
 * system calls and the other ranks use a mapping. On a disk's file system the ranks write one after
 * another. */
static int write_batch_exclusively(struct transfer *t, const struct batch *b)
{
    struct file *f = t->a->file;
    const bool parallel = f->turn && f->in_memory;
    const bool turn = parallel ? mapped_try_take_turn(f) : f->turn && b->pieces > 1 && mapped_turn_wait(f);
    if (parallel && !turn && b->bytes >= BATCH_WORTH_MAPPING &&
        b->bytes / (uint64_t)b->pieces >= PIECE_WORTH_MAPPING && write_mapped(t, b, false))
        return 0;
    const int rc = move_batch(t, b);
    if (turn)
        mapped_release_turn(f);
    return rc;
}

static int write_batch(struct transfer *t, const struct batch *b)
{
    struct file *f = t->a->file;
    const bool rewrites = batch_should_rewrite_gaps(t, b);
    const bool whole = !rewrites && b->pieces > 1 && nfs_locks_whole_file(f, b->bytes / (uint64_t)b->pieces);
    const int64_t from = whole ? 0 : b->from, length = whole ? 0 : b->to - b->from;
    bool held = false;
    int rc = rewrites ? allocate_buffer(t) : 0;
    if (!rc && !t->a->locked)
        rc = posix_guard_range(f, rewrites || whole, from, length, &held);
    if (rc)
        return rc;
    if (rewrites && (held || t->a->locked))
        rc = sieve_write(t, b);
    else if (!f->maps || !batch_has_small_pieces(b, PIECE_WORTH_MAPPING, HOLE_WORTH_READING) ||
             !write_mapped(t, b, true))
        rc = write_batch_exclusively(t, b);
    if (held)
        posix_unlock(f, from, length);
    return rc;
}

/* Writes all pieces in batches. Bytes outside all views of this file are not written: other file handles
 * and other programs may write them concurrently. */
static int write_batches(struct transfer *t)
{
    struct access *a = t->a;
    const bool parallel = a->file->turn && a->file->in_memory;
    const uint64_t span = a->view.tiled_from < INT64_MAX ? (uint64_t)a->file->hints.ind_wr_buffer_size
                          : parallel                     ? TURN_SPAN
                                                         : MAPPED_SPAN;
    struct batch b;
    int64_t from;
    int rc = 0;
    if (parallel) {
        t->batch_limit = TURN_BYTES;
        if (view_is_sorted(&a->view, a->start, a->length))
            view_file_range(&a->view, a->start, a->length, &from, &t->reach);
    }
    t->sieves = a->view.tiled_from < INT64_MAX;
    t->fence = a->view.tiled_from;
    for (batch_collect_pieces(t, &b, span); b.pieces > 0 && !rc; batch_collect_pieces(t, &b, span))
        rc = write_batch(t, &b);
    if (t->touched)
        mapped_update_times(a->file);
    return rc;
}

static int transfer_pieces(struct transfer *t)
{
    struct access *a = t->a;
    const struct io_hints *h = &a->file->hints;
    const enum io_choice choice = !a->write ? h->ds_read : h->ds_write == IO_ENABLE ? IO_ENABLE : IO_DISABLE;
    struct batch b = {.places = t->places, .bytes = a->length};
    t->sieves = file_reads(a->file) && choice != IO_DISABLE && !a->view.contiguous;
    if (!t->sieves)
        return a->write ? write_batches(t) : move_batch(t, &b);
    for (;;) {
        batch_collect_pieces(t, &b, (uint64_t)(a->write ? h->ind_wr_buffer_size : h->ind_rd_buffer_size));
        if (b.pieces == 0)
            return 0;
        const bool dense = batch_is_dense(&b, choice);
        int rc = dense ? allocate_buffer(t) : 0;
        if (!rc)
            rc = !dense ? move_batch(t, &b) : a->write ? sieve_write(t, &b) : sieve_read(t, &b);
        if (rc)
            return rc;
    }
}

static int access_move_data(struct access *a)
{
    struct transfer t = {.a = a, .batch_limit = UINT64_MAX / 4};
    char *block;
    view_walk_open(&t.places, &a->view, a->start, a->start + a->length);
    access_memory(a, &t.memory);
    if (access_is_block(a, &block)) {
        t.block = block;
    } else {
        void *piece;
        struct dt_cursor first = t.memory;
        t.small = dt_cursor_next(&first, SIZE_MAX / 2, &piece) < LIST_PIECE_MIN;
    }
    const int rc = transfer_pieces(&t);
    free(t.buffer);
    return rc == ERR_AGAIN ? 0 : rc;
}

/* The range that access_transfer locks: a length of 0 is the whole file. */
static void find_lock_range(const struct access *a, int64_t *from, int64_t *length)
{
    struct view_walk w;
    int64_t to;
    view_walk_open(&w, &a->view, a->start, a->start + a->length);
    const uint64_t first = view_walk_next(&w, a->length, &to);
    *from = *length = 0;
    if (a->write && first < a->length && nfs_locks_whole_file(a->file, first))
        return;
    view_file_range(&a->view, a->start, a->length, from, &to);
    *length = to - *from;
}

int access_transfer(struct access *a)
{
    const bool locks = a->file->atomic || (a->write && a->file->hints.ds_write == IO_ENABLE);
    int64_t from, length;
    int rc = 0;
    if (a->length == 0)
        return 0;
    if (!locks)
        return access_move_data(a);
    find_lock_range(a, &from, &length);
    rc = posix_lock(a->file, a->write, from, length);
    if (rc)
        return rc;
    a->locked = true;
    rc = access_move_data(a);
    posix_unlock(a->file, from, length);
    return rc;
}
