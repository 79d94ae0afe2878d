/* aggregators.h: aggregators of collective access.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_AGGREGATORS_H
#define FP_IO_AGGREGATORS_H

#include "io/file_op.h"

/* Chooses the aggregators from nodes and hints. Does not communicate; the result is the same at all ranks of a
 * job. */
int aggregators_choose(struct file *f);
/* Replaces the result by that of rank 0: ranks of different jobs do not know each other's nodes. */
int aggregators_broadcast(struct file *f);
/* Frees the buffers that the file retains from the last operation. */
void exchange_free_spare(struct file *f);

/* Returns whether aggregators perform the operation, from the access records of all ranks. */
bool aggregators_are_faster(const struct file *f, bool write, const int64_t *records);

/* The data exchange of one collective operation. exchange_advance makes progress and returns true when the
 * operation has finished; exchange_close returns the error and, for a read, the file offset at which it
 * ended. */
int exchange_open(struct io_op *op, struct exchange **out);
bool exchange_advance(struct exchange *x);
int exchange_close(struct exchange *x, int64_t *end);

#endif
