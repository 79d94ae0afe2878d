/* open.c: opens, closes and deletes files. Rank 0 opens a file first, so that the file is created once and
 * an error of its name or permissions is reported once; then all other ranks open the existing file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/kill_point.h"
#include "base/objmem.h"
#include "boot/boot.h"
#include "io/agree.h"
#include "io/aggregators.h"
#include "io/datarep.h"
#include "io/mapped.h"
#include "io/posix.h"
#include "io/pointer.h"
#include "io/nfs.h"
#include "io/stripes.h"
#include "obj/create.h"

/* A file that rank 0 created may be visible to other nodes only after some time (NFS clients cache names):
 * number of attempts to open it, the attempt before which the server is queried, and the wait between two
 * attempts. */
#define APPEAR_TRIES   200
#define APPEAR_QUERY   20
#define APPEAR_WAIT_NS 10000000

/* The name without a file-system prefix such as "ufs:": the file system is detected instead. */
static const char *skip_prefix(const char *name)
{
    static const char *const prefixes[] = {"ufs:", "nfs:", "lustre:", "gpfs:", "panfs:", "xfs:", "testfs:"};
    for (size_t i = 0; i < COUNT_OF(prefixes); i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return name + strlen(prefixes[i]);
    return name;
}

#define MODES_KNOWN                                                                        \
    (MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL | \
     MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND)

static int check_amode(const char *name, int amode)
{
    const int accesses =
        !!(amode & MPI_MODE_RDONLY) + !!(amode & MPI_MODE_RDWR) + !!(amode & MPI_MODE_WRONLY);
    if (accesses != 1)
        return err_set(
            MPI_ERR_AMODE,
            "%s: amode must have exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY", name);
    if (amode & ~MODES_KNOWN)
        return err_set(MPI_ERR_AMODE, "%s: amode %d has bits that are not a file mode", name, amode);
    if ((amode & MPI_MODE_RDONLY) && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)))
        return err_set(MPI_ERR_AMODE,
                       "%s: MPI_MODE_RDONLY cannot be combined with MPI_MODE_CREATE or "
                       "MPI_MODE_EXCL",
                       name);
    if ((amode & MPI_MODE_RDWR) && (amode & MPI_MODE_SEQUENTIAL))
        return err_set(MPI_ERR_AMODE, "%s: MPI_MODE_RDWR cannot be combined with MPI_MODE_SEQUENTIAL", name);
    return 0;
}

static int open_flags(const struct file *f)
{
    return O_CLOEXEC | (f->amode & MPI_MODE_RDONLY ? O_RDONLY : f->amode & MPI_MODE_RDWR ? O_RDWR : O_WRONLY);
}

static int report_open_error(struct file *f)
{
    const int error = errno;
    if ((error == EACCES || error == EPERM) && file_writes(f) && access(f->path, F_OK) == 0)
        return err_set(MPI_ERR_ACCESS, "%s: no permission to write the file", f->name);
    return posix_error(f->name, "opening", error);
}

static int open_on_rank_0(struct file *f)
{
    int flags = open_flags(f);
    const mode_t mode = f->hints.file_perm >= 0 ? (mode_t)f->hints.file_perm : 0666;
    if (f->amode & MPI_MODE_CREATE)
        flags |= O_CREAT | (f->amode & MPI_MODE_EXCL ? O_EXCL : 0);
    if (stripes_create(f, mode)) /* stripes_create() has checked that the file did not exist */
        flags &= ~O_EXCL;
    f->fd = open(f->path, flags, mode);
    return f->fd < 0 ? report_open_error(f) : 0;
}

/* True if the server has a file of this name. A client of a network file system that has looked up the
 * name before may report for up to 30 s that it does not exist; an attempt to create it queries the
 * server. If the attempt succeeds, this folder is not the one that rank 0 uses. */
static bool name_exists_on_server(const struct file *f)
{
    const int fd = open(f->path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return true;
    close(fd);
    unlink(f->path);
    return false;
}

static int open_on_other_rank(struct file *f)
{
    const int tries = f->amode & MPI_MODE_CREATE ? APPEAR_TRIES : 1;
    for (int i = 0; i < tries; i++) {
        f->fd = open(f->path, open_flags(f));
        if (f->fd >= 0)
            return 0;
        if (errno != ENOENT)
            break;
        if (i == APPEAR_QUERY && !name_exists_on_server(f)) {
            errno = ENOENT;
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = APPEAR_WAIT_NS}, NULL);
    }
    if (errno == ENOENT && (f->amode & MPI_MODE_CREATE))
        return err_set(MPI_ERR_NO_SUCH_FILE,
                       "%s: rank 0 created the file, but rank %d does not see it. The folder must be on a "
                       "file system that all "
                       "nodes share",
                       f->name, f->comm->rank);
    return report_open_error(f);
}

static int check_file_type(struct file *f)
{
    struct stat st;
    if (fstat(f->fd, &st) != 0)
        return posix_error(f->name, "querying the file (fstat)", errno);
    if (S_ISDIR(st.st_mode))
        return err_set(MPI_ERR_BAD_FILE, "%s is a folder", f->name);
    if (lseek(f->fd, 0, SEEK_CUR) < 0 && errno == ESPIPE)
        return err_set(MPI_ERR_UNSUPPORTED_OPERATION,
                       "%s is a pipe, a socket or a terminal; ranks share files that can be read and written "
                       "at any place, also with MPI_MODE_SEQUENTIAL",
                       f->name);
    return 0;
}

/* All ranks use rank 0's hints, since aggregators and buffer sizes must be equal, and rank 0's description of
 * the file system (`near`, `in_memory`). */
static int broadcast_hints(struct file *f)
{
    struct {
        struct io_hints hints;
        bool near, in_memory;
    } first;
    memset(&first, 0, sizeof(first));
    first.hints = f->hints;
    first.near = f->near;
    first.in_memory = f->in_memory;
    const int rc = agree_bcast(f->comm, &first, sizeof(first));
    f->hints = first.hints;
    f->near = first.near;
    f->in_memory = first.in_memory;
    return rc;
}

/* The names of all ranks must designate one file. The names are not compared, since nodes may use different
 * paths to the file. */
static int open_on_all_ranks(struct file *f)
{
    int rc = f->comm->rank == 0 ? open_on_rank_0(f) : 0;
    KILL_POINT(file_first_opened);
    rc = agree_error(f->comm, f->name, rc);
    if (!rc && f->comm->rank == 0) {
        stripes_find(f);
        mapped_probe(f);
    }
    if (!rc)
        rc = broadcast_hints(f);
    if (rc)
        return rc;
    const bool near = f->near, in_memory = f->in_memory;
    rc = f->comm->rank == 0 ? 0 : open_on_other_rank(f);
    if (!rc)
        rc = check_file_type(f);
    if (!rc) {
        mapped_probe(f);
        nfs_probe(f);
    }
    f->near = near;
    f->in_memory = in_memory;
    KILL_POINT(file_other_opened);
    return agree_error(f->comm, f->name, rc);
}

static int init_file_pointers(struct file *f)
{
    struct dtype *byte = dtype_from_handle(MPI_BYTE);
    int rc = view_make(&f->view, 0, byte, byte, datarep_find("native"), file_writes(f));
    if (!rc)
        rc = pointer_open(f);
    rc = agree_error(f->comm, f->name, rc);
    if (rc || !(f->amode & MPI_MODE_APPEND))
        return rc;
    rc = f->comm->rank == 0 ? file_size(f, &f->position) : 0;
    const int failed = agree_bcast(f->comm, &f->position, sizeof(f->position));
    rc = rc ? rc : failed;
    pointer_restart(f, f->position);
    return agree_error(f->comm, f->name, rc);
}

static void file_free(struct file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    mapped_close_watch(f);
    view_release(&f->view);
    exchange_free_spare(f);
    errhandler_release(f->head.errhandler);
    comm_release(f->comm);
    free(f->aggregators);
    free(f->name);
    f->head.obj.magic = MAGIC_FREED;
    objmem_free(f);
}

static int file_new(const char *name, int amode, struct file **out)
{
    struct file *f = objmem_new(sizeof(*f));
    char *copy = strdup(name);
    if (!f || !copy) {
        free(copy);
        if (f)
            objmem_free(f);
        return err_set(MPI_ERR_NO_MEM, "out of memory: cannot open %s", name);
    }
    *f = (struct file){.head.obj = object_init(MAGIC_FILE), .name = copy, .fd = -1, .amode = amode};
    f->path = skip_prefix(copy);
    f->shared.fd = -1;
    list_init(&f->ops);
    *out = f;
    return 0;
}

int file_open(struct comm *comm, const char *name, int amode, struct info *info, struct file **out)
{
    struct file *f;
    const int64_t same = amode;
    if (comm->remote)
        return err_set(MPI_ERR_COMM, "%s: a file cannot be opened on an intercommunicator", name);
    int rc = file_new(name, amode, &f);
    if (rc)
        return rc;
    rc = comm_dup(comm, NULL, &f->comm);
    if (!rc)
        rc = agree_check_equal(f->comm, name, "amode", &same, 1);
    if (!rc)
        rc = check_amode(name, amode); /* amode is equal at all ranks, so all get the same result */
    io_hints_default(&f->hints);
    io_hints_apply(&f->hints, info, true);
    if (!rc)
        rc = open_on_all_ranks(f);
    if (!rc)
        rc = agree_error(f->comm, name, aggregators_choose(f));
    if (!rc && f->comm->guests)
        rc = aggregators_broadcast(f);
    if (!rc)
        rc = init_file_pointers(f);
    if (rc) {
        pointer_close(f, false); /* no rank has used the shared file pointer */
        file_free(f);
        return rc;
    }
    f->head.errhandler = errhandler_retain(errhandler_of_no_file);
    *out = f;
    return 0;
}

/* Some file systems report errors of earlier writes only at close. */
static int close_fd(struct file *f)
{
    int rc = 0;
    if (f->hints.sync_close && file_writes(f) && fsync(f->fd) != 0)
        rc = posix_error(f->name, "writing to disk (fsync)", errno);
    const int fd = f->fd;
    f->fd = -1;
    if (close(fd) != 0 && errno != EINTR && !rc)
        rc = posix_error(f->name, "closing", errno);
    return rc;
}

int file_close(struct file *f)
{
    int rc = close_fd(f);
    rc = agree_error(f->comm, f->name, rc); /* after this collective no rank uses the shared file pointer */
    /* True if a rank died, possibly rank 0: every rank then removes the files. */
    const bool broken = f->comm->broken != 0;
    const bool removes = f->comm->rank == 0 || broken;
    pointer_close(f, removes);
    if (f->amode & MPI_MODE_DELETE_ON_CLOSE) {
        int deleted = 0;
        if (removes && unlink(f->path) != 0 && !(broken && errno == ENOENT))
            deleted = posix_error(f->name, "deleting", errno);
        deleted = agree_error(f->comm, f->name, deleted);
        rc = rc ? rc : deleted;
    }
    file_free(f);
    return rc;
}

int file_delete(const char *name)
{
    return unlink(skip_prefix(name)) == 0 ? 0 : posix_error(name, "deleting", errno);
}
