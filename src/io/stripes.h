/* stripes.h: how a parallel file system spreads a file over its servers. On Lustre the hints striping_factor and
 * striping_unit decide the layout of a file that is created, and the layout that a file has decides who writes what in
 * collective access. On GPFS it is the size of a block.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_STRIPES_H
#define FP_IO_STRIPES_H

#include <sys/types.h>

#include "io/file.h"

/* Rank 0, before the file is opened: creates it with the layout that the hints ask for, if it does not exist, is to be
 * created and is on Lustre. True when it did. Anything else is left to open(2), which also reports what is wrong. */
bool stripes_create(const struct file *f, mode_t mode);

/* Rank 0, when the file is open: hints.striping_factor and striping_unit become what the file has, where the file system
 * tells it. */
void stripes_find(struct file *f);

#endif
