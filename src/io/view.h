/* view.h: a rank's view of a file (MPI-5.0, 14.3): the bytes that the filetype selects, tile after tile
 * from the displacement on, as one stream. Positions in the stream count bytes in the file's data
 * representation.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_VIEW_H
#define FP_IO_VIEW_H

#include "dt/dtype.h"

struct datarep;

struct view {
    int64_t disp;
    struct dtype *etype, *filetype; /* the user's types, with a reference to each */
    struct dtype *tile;             /* the filetype with the sizes of the data representation */
    const struct datarep *rep;
    int64_t unit;       /* bytes of an etype in the file */
    bool contiguous;    /* the stream is the file from disp on */
    bool tile_sorted;   /* displacements do not decrease within a tile */
    bool sorted;        /* displacements do not decrease within and between tiles */
    int64_t tiled_from; /* file offset from which the views of all ranks cover each byte once: see manage.c */
};

/* Checks the types and creates a view. writable: the filetype must not overlap itself. Not collective. */
int view_make(struct view *v, int64_t disp, struct dtype *etype, struct dtype *filetype,
              const struct datarep *rep, bool writable);
void view_copy(const struct view *from, struct view *to);
void view_release(struct view *v);

/* True if the tiles that contain stream bytes [start, start + length) end at file offsets of at most 2^63
 * - 1. All functions below except view_bytes_before() require view_fits(). */
bool view_fits(const struct view *v, uint64_t start, uint64_t length);

/* Iterator over the pieces of the file that stream bytes [start, end) are mapped to. */
struct view_walk {
    const struct view *view;
    struct dt_cursor cursor;
    uint64_t position, end;
    int64_t base; /* file offset of the cursor's first tile */
};
void view_walk_open(struct view_walk *w, const struct view *v, uint64_t start, uint64_t end);
/* Advances over the next piece that is contiguous in the file, at most max bytes. Returns its length; 0 at
 * the end. */
uint64_t view_walk_next(struct view_walk *w, uint64_t max, int64_t *offset);

/* True if file offsets never decrease over these bytes of the stream. */
bool view_is_sorted(const struct view *v, uint64_t start, uint64_t length);
/* A range [*from, *to) of the file that contains these bytes: the smallest one, or whole tiles if offsets
 * decrease. */
void view_file_range(const struct view *v, uint64_t start, uint64_t length, int64_t *from, int64_t *to);

/* Returns the file offset of a byte of the stream. */
int64_t view_offset(const struct view *v, uint64_t position);
/* The first byte in [from, to) of the stream whose file offset is at least `offset`; `to` if there is
 * none. File offsets must not decrease over these bytes. */
uint64_t view_offset_to_position(const struct view *v, uint64_t from, uint64_t to, int64_t offset);
/* The number of stream bytes whose file offset is less than `offset`. */
uint64_t view_bytes_before(const struct view *v, int64_t offset);

#endif
