/* tiles.h: detects whether the views of all ranks of a file together cover each byte once. The holes of a
 * rank's view then belong to the views of other ranks, and a rank may read a hole and write it back
 * unchanged under a lock that all writers acquire.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_TILES_H
#define FP_IO_TILES_H

#include "io/file.h"

enum { TILE_DISP, TILE_EXTENT, TILE_SUM, TILE_WORDS };

/* Describes the cover of a view of this rank. Returns false if tiles_agree does not support such views. */
bool tiles_describe_view(const struct file *f, const struct view *v, int64_t out[TILE_WORDS]);
/* Collective; called after the view was set, if tiles_describe_view returned true at all ranks. Sets
 * f->view.tiled_from to the offset from which the views of all ranks together cover every byte of the file,
 * or INT64_MAX. */
int tiles_agree(struct file *f, const int64_t mine[TILE_WORDS]);

#endif
