/* spawn_command.c: writes and reads the command line of an mpiexec as a file. Each word is followed by a
 * zero byte.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "boot/spawn_command.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_bytes(int fd, const char *data, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

int spawn_command_write(char *const *words)
{
    const int fd = memfd_create("fishplate-command", MFD_CLOEXEC);
    bool good = fd >= 0;
    for (; good && *words; words++)
        good = write_bytes(fd, *words, strlen(*words) + 1);
    if (good)
        return fd;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

/* Reads the whole file and appends a zero byte. */
static char *read_bytes(int fd, size_t *len)
{
    struct stat s;
    if (fstat(fd, &s) != 0)
        return NULL;
    if (!S_ISREG(s.st_mode) || s.st_size <= 0) {
        errno = EINVAL;
        return NULL;
    }
    char *text = malloc((size_t)s.st_size + 1);
    const ssize_t n = text ? pread(fd, text, (size_t)s.st_size, 0) : -1;
    if (n <= 0) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    *len = (size_t)n;
    return text;
}

char **spawn_command_read(int fd, char *program, int *count)
{
    size_t len = 0;
    char *text = read_bytes(fd, &len);
    if (!text)
        return NULL;
    close(fd);
    size_t n = 1;
    for (size_t i = 0; i < len; i++)
        n += text[i] == '\0';
    char **words = malloc((n + 1) * sizeof(*words));
    if (!words) {
        free(text);
        return NULL;
    }
    words[0] = program;
    char *at = text;
    for (size_t i = 1; i < n; i++, at += strlen(at) + 1)
        words[i] = at;
    words[n] = NULL;
    *count = (int)n;
    return words;
}
