/* pointer.h: the shared file pointer. Ranks of one node store it in a word of the node's shared memory.
 * Between nodes it is a small file in the folder of the file, changed under an fcntl lock, also on NFS
 *. No server process is involved.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_POINTER_H
#define FP_IO_POINTER_H

#include "io/file.h"

/* pointer_open() and pointer_close() are collective. remove: this rank removes the side file, if any. */
int pointer_open(struct file *f);
void pointer_close(struct file *f, bool remove);

/* Adds `etypes` to the pointer and returns its former value in *before. */
int pointer_fetch_and_add(struct file *f, int64_t etypes, int64_t *before);
int pointer_set(struct file *f, int64_t etypes);
/* Resets the pointer to `etypes` for a new view. All ranks call it while none of them uses the pointer,
 * and synchronise afterwards. */
void pointer_restart(struct file *f, int64_t etypes);

#endif
