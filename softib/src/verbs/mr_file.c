/* mr_file.c: finds a descriptor of the file whose mapping is registered, so that peers can map it, too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/mr.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* True if the descriptor refers to the mapped file. Some file systems (overlayfs, btrfs) report different
 * devices in fstat and maps: the result is then false, and the memory is accessed like private memory. */
static bool same_file(int fd, const struct mapping *m)
{
    struct stat st;
    return !fstat(fd, &st) && st.st_ino == m->ino && st.st_dev == m->dev && S_ISREG(st.st_mode);
}

/* Returns the descriptor for a region, or closes it if fewer than a quarter of the permitted descriptors
 * would remain for the program; the region is then accessed like private memory. */
static int mr_file_store(int fd)
{
    struct rlimit most;
    if (fd < 0 || getrlimit(RLIMIT_NOFILE, &most) || (rlim_t)fd < most.rlim_cur - most.rlim_cur / 4)
        return fd;
    close(fd);
    return -1;
}

/* Returns a copy of the program's descriptor `n` if the mapped file can be written through it; else -1. */
static int copy_if_mapped(int n, const struct mapping *m)
{
    const int mode = fcntl(n, F_GETFL);
    return mode >= 0 && (mode & O_ACCMODE) == O_RDWR && same_file(n, m) ? fcntl(n, F_DUPFD_CLOEXEC, 64) : -1;
}

#define OPENED_LAST 8

/* Searches the descriptors just below `free`, the lowest unused one: memory is usually registered soon
 * after its file was opened. */
static int find_recent_descriptor(const struct mapping *m, int free)
{
    int fd = -1;
    for (int n = free - 1; fd < 0 && n >= 0 && n >= free - OPENED_LAST; n--)
        fd = copy_if_mapped(n, m);
    return fd;
}

/* Opens the mapping through /proc/self/map_files, which the kernel permits to privileged processes only. */
static int open_map_file(const struct mapping *m)
{
    char path[96];
    snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx", (unsigned long long)m->start,
             (unsigned long long)m->end);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && !same_file(fd, m)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Searches all descriptors, of which a program may have thousands. */
static int find_any_descriptor(const struct mapping *m, DIR *all)
{
    int fd = -1;
    for (struct dirent *e; fd < 0 && (e = readdir(all));)
        fd = *e->d_name == '.' ? -1 : copy_if_mapped(atoi(e->d_name), m);
    return fd;
}

/* Returns a descriptor of the mapped file, or -1. */
int mr_open_mapping(const struct mapping *m)
{
    const int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    int fd = find_recent_descriptor(m, folder);
    fd = fd >= 0 ? fd : open_map_file(m);
    DIR *all = fd < 0 ? fdopendir(folder) : NULL;
    if (all) {
        fd = find_any_descriptor(m, all);
        closedir(all);
    } else {
        close(folder);
    }
    return mr_file_store(fd);
}
