/* settings_file.h: settings of a site and of a user, in files: PREFIX/etc/fishplate.conf (PREFIX: the
 * folder above the library's) and $XDG_CONFIG_HOME/fishplate.conf (without that variable
 * ~/.config/fishplate.conf). A line is NAME = value; "#" starts a comment.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SETTINGS_FILE_H
#define FP_BASE_SETTINGS_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Called for each line that is neither empty nor a comment. value NULL: the line is no setting; name is
 * then its text. */
typedef void settings_line_fn(const char *name, const char *value, unsigned line, void *arg);

/* Reads and parses a file. private: a file that another user owns or can write is rejected. Returns 0
 * (also if there is no file) or an errno: EPERM: the file was rejected; EFBIG: it is larger than 64 KiB. */
int settings_file_read(const char *path, bool private, settings_line_fn *handle, void *arg);

/* Write the path of the site's or of the user's file; false if it cannot be determined or is too long. */
bool settings_site_path(char *out, size_t size);
bool settings_user_path(char *out, size_t size);

#endif
