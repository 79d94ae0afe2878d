/* file.h: an open file: communicator, descriptor, view, file pointers and hints; and the operations on a
 * whole file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_FILE_H
#define FP_IO_FILE_H

#include <mpi.h>

#include "base/list.h"
#include "io/hints.h"
#include "io/view.h"
#include "obj/comm.h"
#include "obj/errhandler.h"

struct io_op;
struct io_buffers;

/* Location of the shared file pointer: a word in the node's shared memory if all ranks of the file are on
 * one node, else the side file, in the folder of the file. See pointer.c. */
struct io_shared {
    _Atomic int64_t *word; /* NULL: the side file is used */
    uint64_t offset;       /* offset of `word` in the node's shared memory */
    char *path;            /* path of the side file */
    int fd;                /* descriptor of the side file; -1 until this rank needs it */
    uint64_t key;          /* number that the side file must contain */
    uint64_t generation;   /* generation of the pointer; each new view begins one */
    int64_t initial;       /* value of the pointer at the start of its generation, in etypes */
};

/* The active split collective operation (MPI-5.0, 14.4.5). */
enum io_split {
    SPLIT_NONE,
    SPLIT_READ,
    SPLIT_WRITE,
    SPLIT_READ_AT,
    SPLIT_WRITE_AT,
    SPLIT_READ_ORDERED,
    SPLIT_WRITE_ORDERED
};

struct file {
    struct fallible head; /* magic number MAGIC_FILE; must be the first member */
    struct comm *comm;    /* a duplicate of the user's, for messages of this file alone */
    char *name;           /* file name that the user passed */
    const char *path;     /* `name` without a file system's prefix ("ufs:") */
    int fd;
    int amode;
    bool atomic;
    bool maps; /* small pieces may be written through a mapping: see mapped.h */
    bool near; /* rank 0 has the file on a file system of its machine: small reads come from its page cache */
    bool in_memory;   /* rank 0 has the file on tmpfs */
    bool guards;      /* writes acquire a lock: other ranks may rewrite the same range, see manage.c */
    bool on_nfs;      /* on NFS: see nfs.h */
    bool locks_local; /* locks are effective on one node only */
    bool locks_posix; /* the file system has no locks of open files (F_OFD_SETLK), only of processes */
    /* The node's turn to write, not 0 while a rank has it: see mapped.h. NULL: ranks do not take turns. */
    _Atomic uint32_t *turn;
    struct view view;
    int64_t position; /* individual file pointer, in etypes */
    struct io_shared shared;
    struct io_hints hints;
    int *aggregators; /* ranks that access the file for others in collective calls, from the nodes in turn */
    int naggregators;
    int nnodes;
    uint32_t sequence;        /* number of the next collective operation, from which its tag is computed */
    struct list ops;          /* operations whose requests still exist */
    enum io_split split;      /* kind of the active split operation */
    struct io_op *split_op;   /* request of the active split operation */
    struct io_buffers *spare; /* buffers of the last collective operation, for the next one */
};

/* Opens a file. Collective. Sets *out on success only; an error at one rank is an error at all ranks. */
int file_open(struct comm *comm, const char *name, int amode, struct info *info, struct file **out);
/* Collective. Frees the file, also if an error is returned. */
int file_close(struct file *f);
int file_delete(const char *name);

int file_size(struct file *f, int64_t *size);
/* The functions from here to file_set_info() are collective. */
int file_set_size(struct file *f, int64_t size);
int file_preallocate(struct file *f, int64_t size);
int file_sync(struct file *f);
int file_set_atomicity(struct file *f, bool atomic);
int file_set_view(struct file *f, int64_t disp, struct dtype *etype, struct dtype *filetype,
                  const char *datarep, struct info *info);
int file_set_info(struct file *f, struct info *info);

/* Returns MPI_ERR_UNSUPPORTED_OPERATION for MPI_MODE_SEQUENTIAL, which permits no random access. */
int file_check_random(const struct file *f);
/* Computes in *to the offset in etypes to which MPI_File_seek(offset, whence) moves a file pointer at offset
 * `from`. */
int file_seek(struct file *f, int64_t from, int64_t offset, int whence, int64_t *to);

static inline bool file_writes(const struct file *f)
{
    return (f->amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0;
}
static inline bool file_reads(const struct file *f)
{
    return (f->amode & (MPI_MODE_RDONLY | MPI_MODE_RDWR)) != 0;
}

#endif
