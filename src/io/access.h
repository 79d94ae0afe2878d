/* access.h: one read or write of one rank: its position in the stream of the view, and its memory.
 * access_transfer performs an independent access; collective access uses the same description.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_ACCESS_H
#define FP_IO_ACCESS_H

#include "io/file.h"

struct access {
    struct file *file;
    struct view view; /* the file's view at the start of the access; MPI_File_set_view does not change it */
    bool write;
    bool locked; /* one lock covers the whole access */
    void *buf;
    MPI_Count count;
    struct dtype *type;
    uint64_t start, length; /* bytes in the stream of the view */
    void *device;     /* the user's buffer if it is in GPU memory; `buf` is then a copy in host memory */
    void *copy;       /* allocation of that copy */
    size_t copy_size; /* size of `copy` in bytes */
    void *converted;  /* the data in the file's representation if that differs from the one in memory */
    uint64_t moved;   /* bytes of the stream that were read or written */
};

/* Describes an access at an offset in etypes; converts data to be written. The caller calls access_close()
 * even if access_open() fails. */
int access_open(struct access *a, struct file *f, bool write, void *buf, MPI_Count count, struct dtype *type,
                int64_t offset);
/* Initialises an access without data, for a rank whose arguments are wrong in a collective call. */
void access_init_empty(struct access *a, struct file *f, bool write, struct dtype *type);
/* Converts data that was read and frees the access. *bytes: the number of bytes for the status. Returns rc
 * or an error of the conversion. */
int access_close(struct access *a, int rc, MPI_Count *bytes);

/* Performs the access, with locks if the file is in atomic mode. a->moved is valid even if it fails. */
int access_transfer(struct access *a);

/* Opens a cursor over the memory of the access. */
void access_memory(const struct access *a, struct dt_cursor *c);
/* True if the memory is one block, which begins at *at. */
bool access_is_block(const struct access *a, char **at);

#endif
