/* pointer.c: reads and changes the shared file pointer. The side file is created when a rank first uses the
 * shared pointer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/pointer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file.h"
#include "base/checked.h"
#include "io/same_call.h"
#include "base/ownfile.h"
#include "io/posix.h"
#include "io/nfs.h"

/* The file that contains the shared file pointer if ranks of a file are on several nodes: ".NAME.shared-KEY"
 * in the folder of the file. Other users may be able to write in this folder. Therefore the name is random,
 * base/ownfile.h opens the file, and nothing is written to a file that does not contain the second key. */

#define SIDEFILE_KEYS 2 /* the first is part of the name, the second of the content */

#define SIDEFILE_MAGIC 0x7265746e696f7046u /* "Fpointer" */
#define BASE_NAME_MAX  64                  /* characters of the file's name in that of the side file */
#define KEY_DIGITS     16
#define RECORD_LOCK    0
/* Byte on which every rank that uses the file holds a shared lock. */
#define USER_LOCK_START ((int64_t)sizeof(struct record))

struct record {
    uint64_t magic, key, generation;
    int64_t value;
};

/* Chooses random keys at rank 0, which all ranks use. */
static int sidefile_choose_keys(uint64_t *keys)
{
    const size_t bytes = SIDEFILE_KEYS * sizeof(*keys);
    return getrandom(keys, bytes, 0) == (ssize_t)bytes
               ? 0
               : err_set(MPI_ERR_IO,
                         "the kernel gave no random bytes (getrandom) for the name of a shared file "
                         "pointer: %s",
                         strerror(errno));
}

/* The common prefix of the side files of one file, without the folder. */
static void name_prefix(const struct file *f, char *out, size_t size)
{
    const char *slash = strrchr(f->path, '/');
    snprintf(out, size, ".%.*s.shared-", BASE_NAME_MAX, slash ? slash + 1 : f->path);
}

/* Builds the name. The file is created when a rank first needs the pointer. */
static int sidefile_init(struct file *f, const uint64_t *keys)
{
    const char *slash = strrchr(f->path, '/');
    const int folder = slash ? (int)(slash + 1 - f->path) : 0;
    char prefix[BASE_NAME_MAX + 16];
    name_prefix(f, prefix, sizeof(prefix));
    const size_t size = (size_t)folder + strlen(prefix) + KEY_DIGITS + 1;
    f->shared.path = malloc(size);
    if (!f->shared.path)
        return err_set(MPI_ERR_NO_MEM, "%s: out of memory for the name of the shared file pointer", f->name);
    snprintf(f->shared.path, size, "%.*s%s%016llx", folder, f->path, prefix, (unsigned long long)keys[0]);
    f->shared.key = keys[1];
    return 0;
}

/* Called when no rank uses the file any more. remove: this rank deletes the file. */
static void sidefile_close(struct file *f, bool remove)
{
    if (f->shared.fd >= 0)
        close(f->shared.fd);
    if (f->shared.path && remove)
        unlink(f->shared.path);
    free(f->shared.path);
}

static int sidefile_failed(const struct file *f, const char *doing, const char *reason)
{
    return err_set(MPI_ERR_IO,
                   "%s: %s the file of the shared file pointer, %s, failed: %s. Ranks on several nodes need "
                   "a folder that all of them can write",
                   f->name, doing, f->shared.path, reason);
}

/* Removes one file if it is a side file that no rank uses. */
static void remove_unused(int folder, const char *name)
{
    struct record r;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = USER_LOCK_START, .l_len = 1};
    const int fd = ownfile_open(folder, name, O_RDWR);
    if (fd < 0)
        return;
    if (pread(fd, &r, sizeof(r), 0) == (ssize_t)sizeof(r) && r.magic == SIDEFILE_MAGIC &&
        fcntl(fd, F_OFD_SETLK, &lock) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

static void remove_leftovers(const struct file *f)
{
    const char *own = strrchr(f->shared.path, '/');
    char prefix[BASE_NAME_MAX + 16],
        *folder = own ? strndup(f->path, (size_t)(own + 1 - f->shared.path)) : NULL;
    DIR *d = f->locks_posix ? NULL : opendir(folder ? folder : ".");
    own = own ? own + 1 : f->shared.path;
    name_prefix(f, prefix, sizeof(prefix));
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 && strcmp(e->d_name, own) != 0)
            remove_unused(dirfd(d), e->d_name);
    if (d)
        closedir(d);
    free(folder);
}

/* Opens or creates the file. sidefile_read() checks that an existing file was created by another rank that
 * has the same MPI file open. */
static int sidefile_open(struct file *f)
{
    if (f->shared.fd >= 0)
        return 0;
    f->shared.fd = ownfile_create(AT_FDCWD, f->shared.path, O_RDWR);
    const bool created = f->shared.fd >= 0;
    if (!created && errno == EEXIST)
        f->shared.fd = ownfile_open(AT_FDCWD, f->shared.path, O_RDWR);
    if (f->shared.fd < 0)
        return sidefile_failed(f, "opening", strerror(errno));
    const int rc = posix_lock_fd(f, f->shared.fd, F_RDLCK, USER_LOCK_START, 1);
    if (!rc && created)
        remove_leftovers(f);
    return rc;
}

/* Reads the pointer under the lock. A file without a record of this generation stands for the initial
 * value. */
static int sidefile_read(const struct file *f, int64_t *value)
{
    struct record r;
    const ssize_t got = pread(f->shared.fd, &r, sizeof(r), 0);
    *value = f->shared.initial;
    if (got == 0)
        return 0;
    if (got < 0)
        return sidefile_failed(f, "reading", strerror(errno));
    if (got != (ssize_t)sizeof(r) || r.magic != SIDEFILE_MAGIC || r.key != f->shared.key)
        return sidefile_failed(f, "reading", "another file was put in its place");
    if (r.generation == f->shared.generation)
        *value = r.value;
    return 0;
}

static int sidefile_write(const struct file *f, int64_t value)
{
    const struct record r = {SIDEFILE_MAGIC, f->shared.key, f->shared.generation, value};
    const ssize_t put = pwrite(f->shared.fd, &r, sizeof(r), 0);
    return put == (ssize_t)sizeof(r) ? 0 : sidefile_failed(f, "writing", strerror(put < 0 ? errno : ENOSPC));
}

/* Reads the pointer into *before and, under the same lock, adds `value` or stores it. */
static int sidefile_change_value(struct file *f, bool add, int64_t value, int64_t *before)
{
    int rc = nfs_check_locks(f);
    if (!rc)
        rc = sidefile_open(f);
    if (!rc)
        rc = posix_lock_fd(f, f->shared.fd, F_WRLCK, RECORD_LOCK, sizeof(struct record));
    if (rc)
        return rc;
    rc = sidefile_read(f, before);
    int64_t after = value;
    if (!rc && add && !checked_add(*before, value, &after))
        rc = err_set(MPI_ERR_ARG, "%s: the shared file pointer would be beyond the largest offset", f->name);
    if (!rc)
        rc = sidefile_write(f, after);
    posix_lock_fd(f, f->shared.fd, F_UNLCK, RECORD_LOCK, sizeof(struct record));
    return rc;
}

/* Resets the pointer to `value`. All ranks call it, while none of them uses the pointer. */
static void sidefile_restart(struct file *f, int64_t value)
{
    f->shared.initial = value;
    f->shared.generation++;
}

#define NO_WORD UINT64_MAX
/* In the node's shared memory: the pointer, and the turn to write (mapped.h), each in a cache line. */
#define WORDS_LENGTH (2 * CACHE_LINE)

int pointer_open(struct file *f)
{
    struct net *net = f->comm->proc->net;
    struct {
        uint64_t word, keys[SIDEFILE_KEYS];
    } chosen = {.word = NO_WORD};
    int failed = 0;
    f->shared.fd = -1;
    if (f->comm->rank == 0) {
        if (f->nnodes == 1 && net->area && net_area_alloc(net, WORDS_LENGTH, &chosen.word) != 0)
            chosen.word = NO_WORD;
        if (chosen.word == NO_WORD)
            failed = sidefile_choose_keys(chosen.keys);
    }
    int rc = agree_bcast(f->comm, &chosen, sizeof(chosen));
    if (rc || failed)
        return rc ? rc : failed;
    f->shared.offset = chosen.word;
    if (chosen.word == NO_WORD)
        return sidefile_init(f, chosen.keys);
    f->shared.word = (void *)(net->area + chosen.word);
    if (f->comm->size > 1 && (f->in_memory ? f->maps : f->near && !net->oversubscribed))
        f->turn = (void *)(net->area + chosen.word + CACHE_LINE);
    return 0;
}

void pointer_close(struct file *f, bool remove)
{
    if (f->shared.word && f->comm->rank == 0)
        net_area_free(f->comm->proc->net, f->shared.offset, WORDS_LENGTH);
    sidefile_close(f, remove);
}

int pointer_fetch_and_add(struct file *f, int64_t etypes, int64_t *before)
{
    if (!f->shared.word)
        return sidefile_change_value(f, true, etypes, before);
    int64_t after;
    *before = atomic_load(f->shared.word);
    do {
        if (!checked_add(*before, etypes, &after))
            return err_set(MPI_ERR_ARG, "%s: the shared file pointer would be beyond the largest offset",
                           f->name);
    } while (!atomic_compare_exchange_weak(f->shared.word, before, after));
    return 0;
}

int pointer_set(struct file *f, int64_t etypes)
{
    int64_t before;
    if (!f->shared.word)
        return sidefile_change_value(f, false, etypes, &before);
    atomic_store(f->shared.word, etypes);
    return 0;
}

void pointer_restart(struct file *f, int64_t etypes)
{
    if (!f->shared.word)
        sidefile_restart(f, etypes);
    else if (f->comm->rank == 0)
        atomic_store(f->shared.word, etypes);
}
