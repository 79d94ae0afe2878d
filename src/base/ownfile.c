/* ownfile.c: opens files of this user in folders that other users can write, and checks them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/ownfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHERS_WRITE  (S_IWGRP | S_IWOTH)
#define OTHERS_ACCESS (S_IRWXG | S_IRWXO)

static int close_with_error(int fd, int error)
{
    close(fd);
    errno = error;
    return -1;
}

static bool is_owned_by_user(const struct stat *s, mode_t forbidden)
{
    return s->st_uid == geteuid() && (s->st_mode & forbidden) == 0;
}

int ownfile_open_folder(const char *path, bool create)
{
    struct stat s;
    if (create && mkdir(path, S_IRWXU) != 0 && errno != EEXIST)
        return -1;
    /* O_DIRECTORY with O_NOFOLLOW reports a symbolic link as ENOTDIR. */
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &s) != 0)
        return close_with_error(fd, errno);
    return is_owned_by_user(&s, OTHERS_ACCESS) ? fd : close_with_error(fd, EPERM);
}

/* True if the file has a single name, or no other user can create another: a hard link would let another user
 * direct writes to any file of this user. */
static bool has_single_link(int folder, const struct stat *s)
{
    struct stat f;
    if (s->st_nlink <= 1)
        return true;
    return folder != AT_FDCWD && fstat(folder, &f) == 0 && is_owned_by_user(&f, OTHERS_WRITE);
}

int ownfile_open(int folder, const char *name, int flags)
{
    struct stat s;
    /* O_NONBLOCK: opening a FIFO that another user made would wait for a writer. */
    const int fd = openat(folder, name, (flags & O_ACCMODE) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &s) != 0)
        return close_with_error(fd, errno);
    if (!S_ISREG(s.st_mode) || !is_owned_by_user(&s, OTHERS_WRITE))
        return close_with_error(fd, EPERM);
    if ((flags & O_ACCMODE) != O_RDONLY && !has_single_link(folder, &s))
        return close_with_error(fd, EPERM);
    if ((flags & O_TRUNC) && ftruncate(fd, 0) != 0)
        return close_with_error(fd, errno);
    return fd;
}

int ownfile_create(int folder, const char *name, int flags)
{
    return openat(folder, name, (flags & O_ACCMODE) | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  S_IRUSR | S_IWUSR);
}
