/* view.c: checks etype and filetype, and maps positions in the stream to offsets in the file and back. The
 * mapping uses cursors over datatypes with the buffer address 0: an address is then an offset in the file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/view.h"

#include "base/checked.h"
#include "io/datarep.h"

/* Blocks of a tile whose displacements are checked; blocks behind them are assumed to be valid. */
#define BLOCKS_CHECKED 1000000

static int report_bad_filetype(const char *what)
{
    return err_set(MPI_ERR_IO, "filetype %s (MPI-5.0, 14.3)", what);
}

/* Displacements must not be negative and must not decrease. In a file that is open for writing, the blocks
 * of a tile must not overlap. Tiles may overlap (MPI_Type_create_resized) if the program does not write
 * the same bytes twice. */
static int check_blocks(struct view *v, bool writable)
{
    struct dt_cursor c;
    void *piece;
    int64_t start = 0, end = 0;
    size_t n;
    v->tile_sorted = true;
    dt_cursor_open(&c, v->tile, 1, NULL);
    for (int i = 0; i < BLOCKS_CHECKED && (n = dt_cursor_next(&c, SIZE_MAX / 2, &piece)) > 0; i++) {
        const int64_t at = (int64_t)(intptr_t)piece;
        if (at < start)
            return report_bad_filetype(at < 0 ? "has a negative displacement"
                                              : "has displacements that decrease");
        v->tile_sorted = v->tile_sorted && at >= end;
        start = at;
        end = at + (int64_t)n;
    }
    v->sorted = v->tile_sorted && v->tile->true_extent <= v->tile->extent;
    if (v->tile->true_lb < 0 || v->tile->extent < 0)
        return report_bad_filetype("has a negative displacement or extent");
    if (writable && !v->tile_sorted)
        return report_bad_filetype("overlaps itself, and the file is open for writing");
    return 0;
}

static int check_types(struct view *v, bool writable)
{
    if (v->etype->size == 0)
        return err_set(MPI_ERR_TYPE, "etype has no data");
    if (v->filetype->size % v->etype->size != 0)
        return err_set(MPI_ERR_TYPE, "filetype has %lld bytes, which is not a multiple of the %lld of etype",
                       (long long)v->filetype->size, (long long)v->etype->size);
    return v->tile->size == 0 ? 0 : check_blocks(v, writable);
}

int view_make(struct view *v, int64_t disp, struct dtype *etype, struct dtype *filetype,
              const struct datarep *rep, bool writable)
{
    struct view made = {
        .disp = disp, .etype = etype, .filetype = filetype, .rep = rep, .tiled_from = INT64_MAX};
    dtype_retain(etype);
    dtype_retain(filetype);
    int rc = datarep_file_type(rep, filetype, &made.tile);
    if (!rc)
        rc = datarep_file_size(rep, etype, &made.unit);
    if (!rc)
        rc = check_types(&made, writable);
    if (rc) {
        view_release(&made);
        return rc;
    }
    made.contiguous = made.tile->contiguous && made.tile->size > 0;
    *v = made;
    return 0;
}

void view_copy(const struct view *from, struct view *to)
{
    *to = *from;
    dtype_retain(to->tile);
    dtype_retain(to->filetype);
    dtype_retain(to->etype);
}

void view_release(struct view *v)
{
    if (v->tile)
        dtype_release(v->tile);
    if (v->filetype)
        dtype_release(v->filetype);
    if (v->etype)
        dtype_release(v->etype);
    *v = (struct view){0};
}

bool view_fits(const struct view *v, uint64_t start, uint64_t length)
{
    const struct dtype *t = v->tile;
    uint64_t last;
    int64_t base, end;
    if (length == 0 || t->size == 0)
        return true;
    if (!checked_add(start, length - 1, &last) || last >= INT64_MAX)
        return false;
    if (v->contiguous)
        return checked_add(v->disp, (int64_t)last + 1, &end);
    return checked_mul_add((int64_t)(last / (uint64_t)t->size), t->extent, v->disp, &base) &&
           checked_add(base, t->true_lb + t->true_extent, &end);
}

/* Offsets of the cursor count from `base`, the start of its first tile, so that they are small. */
void view_walk_open(struct view_walk *w, const struct view *v, uint64_t start, uint64_t end)
{
    *w = (struct view_walk){.view = v, .position = start, .end = end};
    if (v->contiguous || start >= end)
        return;
    const uint64_t size = (uint64_t)v->tile->size, first = start / size;
    w->base = v->disp + (int64_t)first * v->tile->extent;
    dt_cursor_open(&w->cursor, v->tile, (MPI_Count)((end - 1) / size - first + 1), NULL);
    dt_cursor_seek(&w->cursor, start - first * size);
}

uint64_t view_walk_next(struct view_walk *w, uint64_t max, int64_t *offset)
{
    uint64_t room = MIN(max, w->end - w->position), done = 0;
    if (room == 0)
        return 0;
    if (w->view->contiguous) {
        *offset = w->view->disp + (int64_t)w->position;
        w->position += room;
        return room;
    }
    /* Joins adjacent pieces: a tile often begins at the end of the tile before it. */
    while (room > 0) {
        struct dt_cursor before = w->cursor;
        void *piece;
        const size_t n = dt_cursor_next(&w->cursor, room, &piece);
        const int64_t at = w->base + (int64_t)(intptr_t)piece;
        if (n == 0)
            break;
        if (done == 0) {
            *offset = at;
        } else if (at != *offset + (int64_t)done) {
            w->cursor = before;
            break;
        }
        done += n;
        room -= n;
    }
    w->position += done;
    return done;
}

bool view_is_sorted(const struct view *v, uint64_t start, uint64_t length)
{
    const uint64_t size = (uint64_t)v->tile->size;
    return v->sorted || length == 0 || (v->tile_sorted && start / size == (start + length - 1) / size);
}

void view_file_range(const struct view *v, uint64_t start, uint64_t length, int64_t *from, int64_t *to)
{
    const uint64_t size = (uint64_t)v->tile->size;
    if (length == 0) {
        *from = *to = v->disp;
    } else if (view_is_sorted(v, start, length)) {
        *from = view_offset(v, start);
        *to = view_offset(v, start + length - 1) + 1;
    } else { /* offsets decrease: the range contains whole tiles */
        const int64_t low = v->disp + v->tile->true_lb;
        *from = low + (int64_t)(start / size) * v->tile->extent;
        *to = low + (int64_t)((start + length - 1) / size) * v->tile->extent + v->tile->true_extent;
    }
}

int64_t view_offset(const struct view *v, uint64_t position)
{
    struct view_walk w;
    int64_t offset = v->disp;
    if (v->tile->size == 0) /* a filetype without data selects no byte */
        return offset;
    view_walk_open(&w, v, position, position + 1);
    view_walk_next(&w, 1, &offset);
    return offset;
}

/* Binary search: displacements do not decrease. */
uint64_t view_offset_to_position(const struct view *v, uint64_t from, uint64_t to, int64_t offset)
{
    if (v->contiguous) {
        const int64_t position = offset - v->disp;
        return position <= (int64_t)from ? from : MIN((uint64_t)position, to);
    }
    while (from < to) {
        const uint64_t middle = from + (to - from) / 2;
        if (view_offset(v, middle) >= offset)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

uint64_t view_bytes_before(const struct view *v, int64_t offset)
{
    const int64_t beyond = offset - v->disp;
    if (beyond <= 0 || v->tile->size == 0)
        return 0;
    if (v->contiguous || v->tile->extent <= 0)
        return (uint64_t)beyond;
    /* Tiles that begin before `offset` and end before 2^63. If tiles overlap, their bytes may exceed 2^63. */
    const int64_t extent = v->tile->extent, room = INT64_MAX - v->tile->true_lb - v->tile->true_extent;
    const uint64_t size = (uint64_t)v->tile->size;
    const uint64_t tiles =
        room < v->disp ? 0 : (uint64_t)MIN((beyond - 1) / extent, (room - v->disp) / extent) + 1;
    return view_offset_to_position(v, 0, MIN(tiles, INT64_MAX / size) * size, offset);
}
