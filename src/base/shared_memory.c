/* shared_memory.c: creates, opens and checks memory files that processes share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

int shared_memory_create_empty(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

static bool is_sealed(int fd)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & SEALS) == SEALS;
}

bool shared_memory_seal(int fd, uint64_t bytes)
{
    if (is_sealed(fd))
        return true;
    if (ftruncate(fd, (off_t)bytes) != 0)
        return is_sealed(fd); /* true if another process has sealed it concurrently */
    return fcntl(fd, F_ADD_SEALS, SEALS) == 0 || is_sealed(fd);
}

int shared_memory_create(const char *name, uint64_t bytes)
{
    const int fd = shared_memory_create_empty(name);
    if (fd < 0 || shared_memory_seal(fd, bytes))
        return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* True if `fd` (O_PATH allowed) is a memfd that this user created with this name. A memfd has no path; the
 * link in /proc shows the name that was passed to memfd_create. */
static bool is_memory_of_user(int fd, const char *name, uint64_t least)
{
    char path[64], expected[280], found[280];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    snprintf(expected, sizeof(expected), "/memfd:%s (deleted)", name);
    const ssize_t n = readlink(path, found, sizeof(found) - 1);
    return n > 0 && (size_t)n == strlen(expected) && memcmp(found, expected, (size_t)n) == 0 &&
           fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0 && st.st_uid == geteuid() &&
           st.st_size >= 0 && (uint64_t)st.st_size >= least;
}

bool shared_memory_is_valid(int fd, const char *name, uint64_t least)
{
    return is_memory_of_user(fd, name, least) && is_sealed(fd);
}

int shared_memory_open(int pid, int fd, const char *name, uint64_t least)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    const int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0)
        return -1;
    int file = -1;
    errno = EPERM;
    if (is_memory_of_user(place, name, least)) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
        file = open(path, O_RDWR | O_CLOEXEC);
    }
    int why = errno;
    if (file >= 0 && !is_sealed(file)) {
        close(file);
        file = -1;
        why = EPERM;
    }
    close(place);
    errno = why;
    return file;
}

bool shared_memory_is_gone(int pid, int fd)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    return lstat(path, &st) != 0 && (errno == ENOENT || errno == ESRCH);
}
