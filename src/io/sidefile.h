/* sidefile.h: the file that contains the shared file pointer if ranks of a file are on several nodes:
 * ".NAME.shared-KEY" in the folder of the file. Other users may be able to write in this folder. Therefore
 * the name is random, base/ownfile.h opens the file, and nothing is written to a file that does not
 * contain the second key.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_SIDEFILE_H
#define FP_IO_SIDEFILE_H

#include "io/file.h"

#define SIDEFILE_KEYS 2 /* the first is part of the name, the second of the content */

/* Chooses random keys at rank 0, which all ranks use. */
int sidefile_choose_keys(uint64_t *keys);
/* Builds the name. The file is created when a rank first needs the pointer. */
int sidefile_init(struct file *f, const uint64_t *keys);
/* Called when no rank uses the file any more. remove: this rank deletes the file. */
void sidefile_close(struct file *f, bool remove);

/* Reads the pointer into *before and, under the same lock, adds `value` or stores it. */
int sidefile_change_value(struct file *f, bool add, int64_t value, int64_t *before);
/* Resets the pointer to `value`. All ranks call it, while none of them uses the pointer. */
void sidefile_restart(struct file *f, int64_t value);

#endif
