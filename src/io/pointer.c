/* pointer.c: see pointer.h. The side file is created when a shared pointer is first used, so that programs
 * without shared pointers never see it; MPI_File_close removes it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/pointer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/boot.h"
#include "io/agree.h"
#include "io/posix.h"
#include "io/remote.h"

#define NO_WORD UINT64_MAX
/* In the node's memory: the pointer, and whose turn it is to write (mapped.h). */
#define WORDS_LENGTH (2 * CACHE_LINE)

/* ".NAME.shared-JOB-NUMBER" in the folder of the file: unique among open files of running jobs. */
static int side_path(struct file *f, uint64_t number)
{
    const char *slash = strrchr(f->path, '/');
    const char *base = slash ? slash + 1 : f->path;
    const char *job = f->comm->proc->boot->job;
    const size_t size = strlen(f->path) + strlen(job) + 64;
    f->shared.path = malloc(size);
    if (!f->shared.path)
        return err_set(MPI_ERR_NO_MEM, "%s: out of memory for the name of the shared file pointer", f->name);
    int n = snprintf(f->shared.path, size, "%.*s.%.64s.shared-", (int)(base - f->path), f->path, base);
    for (; *job; job++)
        f->shared.path[n++] = *job == '/' ? '-' : *job;
    snprintf(f->shared.path + n, size - (size_t)n, "-%llx", (unsigned long long)number);
    return 0;
}

int pointer_open(struct file *f)
{
    struct net *net = f->comm->proc->net;
    uint64_t told[2] = {NO_WORD, 0};
    f->shared.fd = -1;
    if (f->comm->rank == 0) {
        if (f->nnodes == 1 && net->area && net_area_alloc(net, WORDS_LENGTH, &told[0]) != 0)
            told[0] = NO_WORD;
        told[1] = (uint64_t)getpid() << 32 | p2p_channel(f->comm->proc->p2p);
    }
    int rc = agree_bcast(f->comm, told, sizeof(told));
    if (rc)
        return rc;
    f->shared.offset = told[0];
    if (told[0] != NO_WORD) {
        f->shared.word = (void *)(net->area + told[0]);
        if (f->comm->size > 1 && (f->in_memory ? f->maps : f->near && !net->oversubscribed))
            f->turn = (void *)(net->area + told[0] + CACHE_LINE);
        return 0;
    }
    return side_path(f, told[1]);
}

/* Everybody has stopped using it. */
void pointer_close(struct file *f, bool remove)
{
    if (f->shared.word && f->comm->rank == 0)
        net_area_free(f->comm->proc->net, f->shared.offset, WORDS_LENGTH);
    if (f->shared.fd >= 0)
        close(f->shared.fd);
    if (f->shared.path && remove)
        unlink(f->shared.path);
    free(f->shared.path);
}

static int side_failed(struct file *f, const char *what, int error)
{
    return err_set(MPI_ERR_IO,
                   "%s: %s the file of the shared file pointer, %s, failed: %s. Ranks on several nodes need "
                   "a folder that "
                   "all of them can write",
                   f->name, what, f->shared.path, strerror(error));
}

/* Reads, changes and writes the number under a lock. An empty file stands for the pointer's first value. */
static int side_change(struct file *f, bool add, int64_t value, int64_t *before)
{
    int rc = remote_check_locks(f);
    if (rc)
        return rc;
    if (f->shared.fd < 0)
        f->shared.fd = open(f->shared.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (f->shared.fd < 0)
        return side_failed(f, "opening", errno);
    rc = posix_lock_fd(f, f->shared.fd, F_WRLCK, 0, 0);
    if (rc)
        return rc;
    int64_t now = f->shared.initial;
    const ssize_t got = pread(f->shared.fd, &now, sizeof(now), 0);
    *before = now;
    if (got != 0 && got != (ssize_t)sizeof(now))
        rc = side_failed(f, "reading", got < 0 ? errno : EIO);
    now = add ? now + value : value;
    if (!rc && (!add || value != 0)) {
        const ssize_t put = pwrite(f->shared.fd, &now, sizeof(now), 0);
        if (put != (ssize_t)sizeof(now))
            rc = side_failed(f, "writing", put < 0 ? errno : ENOSPC);
    }
    posix_lock_fd(f, f->shared.fd, F_UNLCK, 0, 0);
    return rc;
}

int pointer_take(struct file *f, int64_t etypes, int64_t *before)
{
    if (!f->shared.word)
        return side_change(f, true, etypes, before);
    *before = atomic_fetch_add(f->shared.word, etypes);
    return 0;
}

int pointer_set(struct file *f, int64_t etypes)
{
    int64_t before;
    if (!f->shared.word)
        return side_change(f, false, etypes, &before);
    atomic_store(f->shared.word, etypes);
    return 0;
}

/* A side file that nobody has made yet is not made now: the folder may be one that cannot be written. */
int pointer_begin(struct file *f, int64_t etypes)
{
    f->shared.initial = etypes;
    if (f->comm->rank != 0)
        return 0;
    if (f->shared.word)
        atomic_store(f->shared.word, etypes);
    else if (truncate(f->shared.path, 0) != 0 && errno != ENOENT)
        return side_failed(f, "clearing", errno);
    return 0;
}
