/* access.h: one read or write of one rank: the position in the stream, and the memory. Independent access is
 * done here at once; collective access uses the same description.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_ACCESS_H
#define FP_IO_ACCESS_H

#include "io/file.h"

struct access {
    struct file *file;
    struct view view; /* of the file when it began: it may be another one before it ends */
    bool write;
    bool locked; /* all of it is under one lock */
    void *buf;
    MPI_Count count;
    struct dtype *type;
    uint64_t start, length; /* in the stream */
    void *device;     /* the user's buffer, if it is in GPU memory: then buf is a copy in host memory ... */
    void *copy;       /* ... whose memory this is ... */
    size_t copy_size; /* ... and its size in bytes */
    void *converted;  /* the data in the file's representation, where that differs from memory's */
    uint64_t moved;   /* bytes of the stream that were read or written */
};

/* Describes an access at an etype offset; converts what is to be written. access_close follows, whatever it returns. */
int access_open(struct access *a, struct file *f, bool write, void *buf, MPI_Count count, struct dtype *type,
                int64_t offset);
/* An access that moves nothing: of a rank whose arguments were wrong, in a collective call. */
void access_init_empty(struct access *a, struct file *f, bool write, struct dtype *type);
/* Converts data that was read. *bytes is set to what the status should count. */
int access_close(struct access *a, int rc, MPI_Count *bytes);

/* Performs the access, with locks if the file is in atomic mode. a->moved is valid even if it fails. */
int access_transfer(struct access *a);

/* A walk over the memory of the access. */
void access_memory(const struct access *a, struct dt_cursor *c);
/* The memory is one block; *at is where it begins. */
bool access_is_block(const struct access *a, char **at);

#endif
