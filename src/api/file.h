/* file.h: the description that all reads and writes of files share, and their blocking and other forms.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_FILE_H
#define FP_API_FILE_H

#include "io/file.h"

enum file_place { AT_OFFSET, AT_POINTER, AT_SHARED, AT_ORDERED };

struct file_call {
    struct file *file;
    bool write;
    bool all; /* collective */
    enum file_place place;
    int64_t offset; /* position for AT_OFFSET */
    void *buf;
    MPI_Count count;
    struct dtype *type;
};

static inline struct file_call file_read_call(struct file *f, bool all, enum file_place place, int64_t offset,
                                              void *buf, MPI_Count count, struct dtype *type)
{
    return (struct file_call){
        .file = f, .all = all, .place = place, .offset = offset, .buf = buf, .count = count, .type = type};
}

/* Describes a write. The buffer is not modified, although the member's type is not const. */
static inline struct file_call file_write_call(struct file *f, bool all, enum file_place place,
                                               int64_t offset, const void *buf, MPI_Count count,
                                               struct dtype *type)
{
    struct file_call call = file_read_call(f, all, place, offset, (void *)(uintptr_t)buf, count, type);
    call.write = true;
    return call;
}

int file_call_run(const struct file_call *call, MPI_Status *status);
int file_call_start(const struct file_call *call, MPI_Request *request);
int file_call_begin(const struct file_call *call, enum io_split split);
int file_call_end(struct file *f, enum io_split split, MPI_Status *status);

#endif
