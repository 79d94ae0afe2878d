/* ownfile.h: files of this user in places where other users may create, rename or link files: /tmp, folders
 * of a group. Every check is made on the descriptor that is returned, never on a path that may name another
 * file a moment later. Needs libc alone.
 *
 * All functions return a descriptor (close-on-exec), or -1 with errno; EPERM: the file belongs to another
 * user, others may write it, or it is no regular file (no folder); ELOOP: it is a symbolic link.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_OWNFILE_H
#define FP_BASE_OWNFILE_H

#include <stdbool.h>

/* Opens a folder to which only this user has access. create: creates it if it is missing (mode 0700). */
int ownfile_open_folder(const char *path, bool create);

/* Opens an existing regular file of this user that no other user can write. folder: a descriptor, or
 * AT_FDCWD. flags: O_RDONLY or O_RDWR; O_TRUNC takes effect after the checks. A file that is opened for
 * writing has no second name (hard link), unless only this user can write its folder. */
int ownfile_open(int folder, const char *name, int flags);

/* Creates a regular file of this user, mode 0600. EEXIST if the name is in use, by any kind of file. */
int ownfile_create(int folder, const char *name, int flags);

#endif
