/* t_shared.c: which descriptors named by another process are opened: only regular files of this user that
 * the other process can write, and only within their pages.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "expect.h"
#include "fabric/registry.h"
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE  65536u /* a multiple of the page size of every machine */
#define BYTES (3 * PAGE)

static bool is_refused(int fd, uint64_t from, uint64_t length)
{
    errno = 0;
    return shared_open_checked(getpid(), fd, from, length) < 0 && errno == EPERM;
}

static bool is_opened(int fd, uint64_t from, uint64_t length)
{
    const int file = shared_open_checked(getpid(), fd, from, length);
    return file >= 0 && close(file) == 0;
}

int main(void)
{
    char path[64];
    int ends[2];
    const int file = memfd_create("part", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT(file >= 0 && !ftruncate(file, BYTES) && !pipe(ends));
    EXPECT(is_opened(file, 0, BYTES) && is_opened(file, PAGE, 2 * PAGE) && is_opened(file, BYTES, 0));
    EXPECT(is_refused(file, 0, BYTES + 1) && is_refused(file, PAGE, BYTES) &&
           is_refused(file, BYTES + PAGE, 0));
    EXPECT(is_refused(file, PAGE, UINT64_MAX) && is_refused(file, UINT64_MAX, PAGE));
    const int part = memfd_create("part of a page", MFD_CLOEXEC);
    EXPECT(part >= 0 && !ftruncate(part, BYTES - 1000));
    /* Regions of whole pages reach beyond the last byte of such a file, and can be mapped. */
    EXPECT(is_opened(part, 0, BYTES) && is_refused(part, 0, BYTES + 1) && is_refused(part, BYTES, 1));
    EXPECT(is_refused(ends[0], 0, 0) && is_refused(ends[1], 0, 0));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    const int reader = open(path, O_RDONLY | O_CLOEXEC);
    /* A file that is open only for reading must not be written. */
    EXPECT(reader >= 0 && is_refused(reader, 0, BYTES));
    EXPECT(shared_open(getpid(), file, BYTES) < 0 && errno == EPERM); /* the file has no seals */
    EXPECT(!fcntl(file, F_ADD_SEALS, SHARED_SEALS));
    const int sealed = shared_open(getpid(), file, BYTES);
    EXPECT(sealed >= 0 && shared_open(getpid(), file, BYTES - 1) < 0 && errno == EPERM);
    close(sealed);
    close(reader);
    EXPECT(shared_open_checked(getpid(), reader, 0, 0) < 0 && errno == ENOENT);
    return 0;
}
