/* open.c: opening, closing and deleting files. Rank 0 goes first, so that a file is created once and an error
 * of the name or the permissions is reported once; then all others open the existing file.
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
#include "io/collective.h"
#include "io/datarep.h"
#include "io/mapped.h"
#include "io/posix.h"
#include "io/pointer.h"
#include "io/remote.h"
#include "io/stripes.h"
#include "obj/create.h"

/* A file that rank 0 made may show up a little later on another node (NFS keeps what it knows of names for a while). */
#define APPEAR_TRIES   200
#define APPEAR_ASK     20
#define APPEAR_WAIT_NS 10000000

/* Removes a file-system prefix such as "ufs:" from the name: the file system is detected instead. */
static const char *without_prefix(const char *name)
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
    const int ways = !!(amode & MPI_MODE_RDONLY) + !!(amode & MPI_MODE_RDWR) + !!(amode & MPI_MODE_WRONLY);
    if (ways != 1)
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

static int open_failed(struct file *f)
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
    if (stripes_create(f, mode)) /* MPI_MODE_EXCL has been seen to */
        flags &= ~O_EXCL;
    f->fd = open(f->path, flags, mode);
    return f->fd < 0 ? open_failed(f) : 0;
}

/* Returns whether the temporary name exists already. A network file system's client that has looked up the name before
 * may report for up to 30 s that the file does not exist; creating it asks the server. If creating succeeds, this
 * folder is not the one that rank 0 uses. */
static bool name_is_taken(const struct file *f)
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
        if (i == APPEAR_ASK && !name_is_taken(f)) {
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
    return open_failed(f);
}

static int check_kind(struct file *f)
{
    struct stat st;
    if (fstat(f->fd, &st) != 0)
        return posix_error(f->name, "asking for the file", errno);
    if (S_ISDIR(st.st_mode))
        return err_set(MPI_ERR_BAD_FILE, "%s is a folder", f->name);
    if (lseek(f->fd, 0, SEEK_CUR) < 0 && errno == ESPIPE)
        return err_set(MPI_ERR_UNSUPPORTED_OPERATION,
                       "%s is a pipe, a socket or a terminal; ranks share files that can be read and written "
                       "at any place, also with MPI_MODE_SEQUENTIAL",
                       f->name);
    return 0;
}

/* All ranks use rank 0's hints: aggregators and buffer sizes must agree. */
static int broadcast_hints(struct file *f)
{
    int64_t numbers[IO_HINT_NUMBERS + 2];
    io_hints_numbers(&f->hints, numbers);
    numbers[IO_HINT_NUMBERS] = f->near;
    numbers[IO_HINT_NUMBERS + 1] = f->in_memory;
    const int rc = agree_bcast(f->comm, numbers, sizeof(numbers));
    io_hints_from_numbers(&f->hints, numbers);
    f->near = numbers[IO_HINT_NUMBERS] != 0;
    f->in_memory = numbers[IO_HINT_NUMBERS + 1] != 0;
    return rc;
}

/* Names must lead to one file, but may be spelled in different ways on different nodes, so they are not compared. */
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
        rc = check_kind(f);
    if (!rc) {
        mapped_probe(f);
        remote_probe(f);
    }
    f->near = near;
    f->in_memory = in_memory;
    KILL_POINT(file_other_opened);
    return agree_error(f->comm, f->name, rc);
}

static int init_file_pointers(struct file *f)
{
    struct dtype *byte = dtype_from(MPI_BYTE);
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
    collective_forget(f);
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
    f->path = without_prefix(copy);
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
        rc = check_amode(name, amode); /* the same everywhere */
    io_hints_default(&f->hints);
    io_hints_apply(&f->hints, info, true);
    if (!rc)
        rc = open_on_all_ranks(f);
    if (!rc)
        rc = agree_error(f->comm, name, collective_choose(f));
    if (!rc)
        rc = init_file_pointers(f);
    if (rc) {
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
    rc = agree_error(f->comm, f->name, rc); /* nobody uses the shared pointer any more */
    const bool first = f->comm->rank == 0,
               broken = f->comm->broken != 0; /* rank 0 may be the one that died */
    pointer_close(f, first || broken);
    if (f->amode & MPI_MODE_DELETE_ON_CLOSE) {
        int gone = 0;
        if ((first || broken) && unlink(f->path) != 0 && !(broken && errno == ENOENT))
            gone = posix_error(f->name, "deleting", errno);
        gone = agree_error(f->comm, f->name, gone);
        rc = rc ? rc : gone;
    }
    file_free(f);
    return rc;
}

int file_delete(const char *name)
{
    return unlink(without_prefix(name)) == 0 ? 0 : posix_error(name, "deleting", errno);
}
