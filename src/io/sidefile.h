/* sidefile.h: the file that holds the shared file pointer if ranks of a file are on several nodes: ".NAME.shared-KEY" in the
 * folder of the file. The folder may be one that other users can write, so the name is random, the file is opened by
 * base/ownfile.h, and its content must carry the key of this open file before a byte of it is changed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_SIDEFILE_H
#define FP_IO_SIDEFILE_H

#include "io/file.h"

#define SIDEFILE_KEYS 2 /* one is part of the name, the other one of the content */

/* Random keys for a new open file. Rank 0 calls it; all ranks use the same keys. */
int sidefile_choose_keys(uint64_t *keys);
/* Builds the name; the file is created when a rank first needs the pointer. */
int sidefile_init(struct file *f, const uint64_t *keys);
/* remove: this rank removes the file. All ranks have stopped using it. */
void sidefile_close(struct file *f, bool remove);

/* Reads the pointer into *before and, under the same lock, adds `value` or stores it. */
int sidefile_change_value(struct file *f, bool add, int64_t value, int64_t *before);
/* The pointer starts anew at `value`. All ranks call it, while none of them uses the pointer. */
void sidefile_restart(struct file *f, int64_t value);

#endif
