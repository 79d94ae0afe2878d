/* stripes.h: the distribution of a file over the servers of a parallel file system. On Lustre the hints
 * striping_factor and striping_unit set the layout of a file that is created, and the layout of a file
 * determines the domains of aggregators in collective access. On GPFS the block size determines the domains.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_STRIPES_H
#define FP_IO_STRIPES_H

#include <sys/types.h>

#include "io/file.h"

/* Called at rank 0 before the file is opened: creates a file on Lustre with the layout of the hints if the
 * file does not exist and MPI_MODE_CREATE is set. Returns true if it created the file. open(2) handles all
 * other cases and reports errors. */
bool stripes_create(const struct file *f, mode_t mode);

/* Called at rank 0 when the file is open: sets hints.striping_factor and striping_unit to the layout of
 * the file if the file system reports it. */
void stripes_find(struct file *f);

#endif
