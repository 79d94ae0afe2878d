/* view.h: what a rank sees of a file (MPI-5.0, 14.3): the bytes that the filetype selects, tile after tile from the
 * displacement on, as one stream. Positions in the stream are bytes of the file's data representation.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_VIEW_H
#define FP_IO_VIEW_H

#include "dt/dtype.h"

struct datarep;

struct view {
    int64_t disp;
    struct dtype *etype, *filetype; /* the user's; retained */
    struct dtype
        *tile; /* the filetype as it lies in the file; the filetype itself unless sizes differ there */
    const struct datarep *rep;
    int64_t unit;       /* bytes of an etype in the file */
    bool contiguous;    /* the stream is the file from disp on */
    bool tile_sorted;   /* displacements do not decrease within a tile, ... */
    bool sorted;        /* ... nor from one tile to the next */
    int64_t tiled_from; /* from here on all ranks' views cover the file, each byte once: see tiles.h */
};

/* Checks types and representation and makes a view; `writable`: the filetype must not overlap itself. Local. */
int view_make(struct view *v, int64_t disp, struct dtype *etype, struct dtype *filetype,
              const struct datarep *rep, bool writable);
void view_copy(const struct view *from, struct view *to);
void view_release(struct view *v);

/* Whether stream bytes [start, start + length) have offsets that a file can have (at most 2^63 - 1). All functions below rely on
 * it, except view_bytes_before. The whole last tile counts, also if the bytes end inside of it. */
bool view_fits(const struct view *v, uint64_t start, uint64_t length);

/* A walk over the places in the file of stream bytes [start, end). */
struct view_walk {
    const struct view *view;
    struct dt_cursor cursor;
    uint64_t position, end;
    int64_t base; /* in the file, of the tile that the cursor counts from */
};
void view_walk_open(struct view_walk *w, const struct view *v, uint64_t start, uint64_t end);
/* The next piece: contiguous in the file and at most max bytes; 0 at the end. */
uint64_t view_walk_next(struct view_walk *w, uint64_t max, int64_t *offset);

/* True if file offsets never decrease over these bytes of the stream. */
bool view_is_sorted(const struct view *v, uint64_t start, uint64_t length);
/* A range [*from, *to) of the file that contains all of these bytes: the smallest one, or slightly larger. */
void view_file_range(const struct view *v, uint64_t start, uint64_t length, int64_t *from, int64_t *to);

/* The file offset of a byte of the stream. */
int64_t view_offset(const struct view *v, uint64_t position);
/* The first byte in [from, to] of the stream whose file offset is at least `offset`; `to` if there is none. The
 * offsets must be sorted. */
uint64_t view_offset_to_position(const struct view *v, uint64_t from, uint64_t to, int64_t offset);
/* The number of stream bytes whose file offset is less than `offset`. */
uint64_t view_bytes_before(const struct view *v, int64_t offset);

#endif
