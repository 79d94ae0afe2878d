/* settings_file.c: reads the settings files of the site and of the user. The owner of a private file is
 * checked, because HOME may be that of another user under `sudo` and some settings contain paths of
 * libraries. The site's file needs no check: a user who can write it can also write the library.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/settings_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tunable.h"

#define FILE_NAME "fishplate.conf"
#define PREFIX    "FISHPLATE_"
#define LONGEST   (64u << 10)
#define BLANKS    " \t\r"

static char *settings_trim_line(char *text)
{
    text += strspn(text, BLANKS);
    for (size_t n = strlen(text); n > 0 && strchr(BLANKS, text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

/* Parses the text of a file, which is modified and ends with a null character. A name may begin with
 * FISHPLATE_. */
static void settings_parse(char *text, settings_line_fn *handle, void *arg)
{
    unsigned line = 0;
    for (char *at = text, *next; at; at = next) {
        line++;
        next = strchr(at, '\n');
        if (next)
            *next++ = '\0';
        at = settings_trim_line(at);
        if (*at == '\0' || *at == '#')
            continue;
        char *value = strchr(at, '=');
        if (value)
            *value++ = '\0';
        char *name = settings_trim_line(at);
        if (strncmp(name, PREFIX, strlen(PREFIX)) == 0)
            name += strlen(PREFIX);
        handle(name, value && *name ? settings_trim_line(value) : NULL, line, arg);
    }
}

static int read_all(int fd, char *out, size_t size)
{
    size_t have = 0;
    for (;;) {
        const ssize_t n = read(fd, out + have, size - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        have += (size_t)n;
        if (have == size)
            return EFBIG;
        if (n == 0)
            break;
    }
    out[have] = '\0';
    return strlen(out) == have ? 0 : EILSEQ;
}

static int open_regular(const char *path, bool private)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    bool allowed = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (private)
        allowed = allowed && st.st_uid == geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    if (allowed)
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

int settings_file_read(const char *path, bool private, settings_line_fn *handle, void *arg)
{
    const int fd = open_regular(path, private);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || (private && errno == EACCES) ? 0 : errno;
    char *text = malloc(LONGEST + 1);
    int rc = text ? read_all(fd, text, LONGEST + 1) : ENOMEM;
    close(fd);
    if (!rc)
        settings_parse(text, handle, arg);
    free(text);
    return rc;
}

bool settings_site_path(char *out, size_t size)
{
    Dl_info me;
    char real[PATH_MAX];
    if (!dladdr((void *)(uintptr_t)settings_site_path, &me) || !me.dli_fname || !realpath(me.dli_fname, real))
        return false;
    char *slash = strrchr(real, '/');
    if (slash)
        *slash = '\0';
    for (int up = 0; up < 2; up++) { /* the library is in PREFIX/lib or in PREFIX/lib/x86_64-linux-gnu */
        slash = strrchr(real, '/');
        if (!slash)
            return false;
        *slash = '\0';
        if (strcmp(real, "/usr") == 0)
            *real = '\0'; /* packages in /usr have their settings in /etc */
        if (strncmp(slash + 1, "lib", 3) == 0)
            return snprintf(out, size, "%s/etc/" FILE_NAME, real) < (int)size;
    }
    return false;
}

bool settings_user_path(char *out, size_t size)
{
    const char *folder = env_get("XDG_CONFIG_HOME"), *home = env_get("HOME");
    if (folder && folder[0] == '/')
        return snprintf(out, size, "%s/" FILE_NAME, folder) < (int)size;
    return home && home[0] == '/' && snprintf(out, size, "%s/.config/" FILE_NAME, home) < (int)size;
}
