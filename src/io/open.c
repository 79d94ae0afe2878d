/* open.c: opens, closes and deletes files. Rank 0 opens a file first, so that the file is created once and
 * an error of its name or permissions is reported once; then all other ranks open the existing file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "io/file.h"
#include "base/kill_point.h"
#include "base/objmem.h"
#include "io/same_call.h"
#include "io/aggregators.h"
#include "io/datarep.h"
#include "io/mapped.h"
#include "io/posix.h"
#include "io/pointer.h"
#include "io/nfs.h"
#include "obj/create.h"

/* The distribution of a file over the servers of a parallel file system. On Lustre the hints striping_factor
 * and striping_unit set the layout of a file that is created, and the layout of a file determines the domains
 * of aggregators in collective access. On GPFS the block size determines the domains. */

#define LUSTRE_MAGIC 0x0bd00bd0
#define GPFS_MAGIC   0x47504653

#define LAYOUT_NAME      "lustre.lov"
#define LAYOUT_V1        0x0bd10bd0
#define LAYOUT_V3        0x0bd30bd0 /* begins with the members of V1 */
#define LAYOUT_COMPOSITE 0x0bd60bd0 /* several layouts, each for a part of the file */
#define PATTERN_RAID0    1
#define ANY_SERVER       0xffff
#define LAYOUT_MAX       65536
#define STRIPE_MIN       65536 /* bytes; stripe sizes are multiples of this number */
#define STRIPES_MAX      2000

struct layout {
    uint32_t magic, pattern;
    uint64_t object[2];
    uint32_t stripe_size;
    uint16_t stripe_count, stripe_offset;
};
_Static_assert(sizeof(struct layout) == 32, "the size of Lustre's lov_user_md_v1");

struct composite {
    uint32_t magic, size, generation;
    uint16_t flags, entries;
    uint16_t mirrors, padding[3];
    uint64_t padding2;
};
_Static_assert(sizeof(struct composite) == 32, "the size of Lustre's lov_comp_md_v1");

enum { ENTRY_SIZE = 48, ENTRY_OFFSET_AT = 24 };

static bool is_on_lustre(const char *path)
{
    struct statfs fs;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    const bool is = folder && statfs(folder, &fs) == 0 && (uint32_t)fs.f_type == LUSTRE_MAGIC;
    free(folder);
    return is;
}

/* mknod creates a file without objects on the servers, whose layout can still be set. */
static bool stripes_create(const struct file *f, mode_t mode)
{
    const struct io_hints *h = &f->hints;
    if (!(f->amode & MPI_MODE_CREATE) || (!h->striping_factor && !h->striping_unit) || !is_on_lustre(f->path))
        return false;
    struct layout l = {.magic = LAYOUT_V1,
                       .pattern = PATTERN_RAID0,
                       .stripe_size = (uint32_t)(h->striping_unit / STRIPE_MIN * STRIPE_MIN),
                       .stripe_count = (uint16_t)MIN(h->striping_factor, STRIPES_MAX),
                       .stripe_offset = ANY_SERVER};
    if (mknod(f->path, S_IFREG | mode, 0) != 0)
        return false; /* the file exists; its layout cannot be changed */
    if (setxattr(f->path, LAYOUT_NAME, &l, sizeof(l), 0) == 0)
        return true;
    unlink(f->path); /* open(2) creates it with the layout of the folder */
    return false;
}

/* Reads the last component of a composite layout, which applies to most of a large file. */
static bool read_layout(const char *value, size_t size, struct layout *out)
{
    struct composite c;
    uint32_t at = 0;
    if (size < sizeof(*out))
        return false;
    memcpy(&c, value, sizeof(c));
    if (c.magic == LAYOUT_COMPOSITE) {
        const size_t entry = sizeof(c) + ((size_t)c.entries - 1) * ENTRY_SIZE;
        if (c.entries == 0 || entry + ENTRY_SIZE > size)
            return false;
        memcpy(&at, value + entry + ENTRY_OFFSET_AT, sizeof(at));
    }
    if (at > size - sizeof(*out))
        return false;
    memcpy(out, value + at, sizeof(*out));
    return (out->magic == LAYOUT_V1 || out->magic == LAYOUT_V3) && out->stripe_size >= STRIPE_MIN;
}

static void find_lustre(struct file *f)
{
    struct layout l;
    char *value = malloc(LAYOUT_MAX);
    const ssize_t got = value ? fgetxattr(f->fd, LAYOUT_NAME, value, LAYOUT_MAX) : -1;
    if (got > 0 && read_layout(value, (size_t)got, &l)) {
        f->hints.striping_unit = l.stripe_size;
        if (l.stripe_count > 0 && l.stripe_count <= STRIPES_MAX)
            f->hints.striping_factor = l.stripe_count;
    }
    free(value);
}

/* Called at rank 0 when the file is open: sets hints.striping_factor and striping_unit to the layout of
 * the file if the file system reports it. */
static void stripes_find(struct file *f)
{
    struct statfs fs;
    struct stat st;
    if (fstatfs(f->fd, &fs) != 0)
        return;
    if ((uint32_t)fs.f_type == LUSTRE_MAGIC)
        find_lustre(f);
    else if ((uint32_t)fs.f_type == GPFS_MAGIC && fstat(f->fd, &st) == 0 && st.st_blksize >= STRIPE_MIN)
        f->hints.striping_unit = st.st_blksize;
}

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
