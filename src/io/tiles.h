/* tiles.h: do the views of a file's ranks together cover the file, each byte once? Then what lies between the pieces of one
 * rank belongs to the others, and a rank may read it, and write it back as it was, under a lock that all writers take.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_TILES_H
#define FP_IO_TILES_H

#include "io/file.h"

/* Collective, after the view was set: f->view.tiled_from becomes the offset from which the views of all ranks together
 * cover every byte of the file, or INT64_MAX. */
int tiles_agree(struct file *f);

#endif
