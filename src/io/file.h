/* file.h: an open file: its private communicator, its descriptor, its view, its pointers and its hints. The
 * other files of this folder work on it.
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

/* Where the shared file pointer lives: a word in the node's memory when all ranks of the file are on one node, else a
 * small file beside the file. See pointer.c. */
struct io_shared {
    _Atomic int64_t *word;
    uint64_t offset;     /* of the word in the node's area */
    char *path;          /* of the side file */
    int fd;              /* of the side file; -1 until this rank needs it */
    uint64_t key;        /* what the side file must contain */
    uint64_t generation; /* of the pointer, one more with each view */
    int64_t initial;     /* where the pointer of this generation starts */
};

/* Which split collective operation is under way (MPI-5.0, 14.4.5). */
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
    struct fallible head; /* MAGIC_FILE; first */
    struct comm *comm;    /* a duplicate of the user's: nobody else speaks on it */
    char *name;           /* as the user gave it */
    const char *path;     /* the same without a file system's prefix ("ufs:") */
    int fd;
    int amode;
    bool atomic;
    bool maps;      /* small pieces may be written through a mapping: see mapped.h */
    bool near;      /* on a file system of this machine, as rank 0 sees it: small reads come from memory */
    bool in_memory; /* on tmpfs, as rank 0 sees it: there is no disk behind it */
    bool guards;    /* writes take a lock, since other ranks may read, change and write again: see tiles.h */
    bool remote;    /* on NFS: see remote.h */
    bool locks_local; /* locks hold on one node only */
    bool locks_posix; /* the file system knows no locks of open files, only of processes */
    /* Not 0 while a rank of this node writes, on file systems of this machine: see mapped.h. Else NULL. */
    _Atomic uint32_t *turn;
    struct view view;
    int64_t position; /* the individual pointer, in etypes */
    struct io_shared shared;
    struct io_hints hints;
    int *
        aggregators; /* ranks that write and read for others in collective access, a node's turn after a node's turn */
    int naggregators;
    int nnodes;
    uint32_t sequence;        /* numbers collective operations: their tag */
    struct list ops;          /* operations whose requests still exist */
    enum io_split split;      /* the split operation under way, ... */
    struct io_op *split_op;   /* ... and its request */
    struct io_buffers *spare; /* buffers of the last collective operation, kept for the next */
};

/* Collective. *out is set on success only; an error at one rank is an error at all. */
int file_open(struct comm *comm, const char *name, int amode, struct info *info, struct file **out);
/* Collective. The file is gone afterwards, whatever is returned. */
int file_close(struct file *f);
int file_delete(const char *name);

int file_size(struct file *f, int64_t *size);
/* Collective. */
int file_set_size(struct file *f, int64_t size);
int file_preallocate(struct file *f, int64_t size);
int file_sync(struct file *f);
int file_set_atomicity(struct file *f, bool atomic);
int file_set_view(struct file *f, int64_t disp, struct dtype *etype, struct dtype *filetype,
                  const char *datarep, struct info *info);
int file_set_info(struct file *f, struct info *info);

/* MPI_ERR_UNSUPPORTED_OPERATION for a file of MPI_MODE_SEQUENTIAL: it has no places that one could go to. */
int file_check_random(const struct file *f);
/* The etype offset that a pointer moved by (offset, whence) stands at; `from` is where it stands now. */
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
