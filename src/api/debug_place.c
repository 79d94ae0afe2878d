/* debug_place.c: where the program called MPI: found from the call stack, told as file and line by addr2line (package
 * binutils) when it is there and the program has debug information (-g).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/debug.h"
#include "api/frames.h"

enum { FRAMES = 32 };

extern char **environ;

void debug_where(struct note_place *out, char *call, size_t size)
{
    void *frames[FRAMES];
    Dl_info there;
    const char *name = "";
    const int count = backtrace(frames, FRAMES);
    const int mpi = frames_mpi(frames, 0, count, &name);
    const int caller = mpi < 0 ? -1 : frames_caller(frames, mpi, count);
    memset(out, 0, sizeof(*out));
    if (call)
        snprintf(call, size, "%s", mpi < 0 ? "" : name);
    if (caller < 0 || !dladdr((const char *)frames[caller] - 1, &there) || !there.dli_fname)
        return;
    /* The program itself is named as it was called. A path that does not fit is of no use. */
    if (there.dli_fname[0] != '/') {
        const ssize_t n = readlink("/proc/self/exe", out->path, sizeof(out->path) - 1);
        out->path[n > 0 ? n : 0] = '\0';
    } else if (strlen(there.dli_fname) < sizeof(out->path)) {
        strcpy(out->path, there.dli_fname);
    }
    /* A program that cannot be moved has its addresses in the file. */
    const bool fixed = ((const ElfW(Ehdr) *)there.dli_fbase)->e_type == ET_EXEC;
    out->offset = (uintptr_t)frames[caller] - (fixed ? 0 : (uintptr_t)there.dli_fbase);
}

/* The first line that the command prints. No shell: the path is the user's. No fork: memory may be registered. */
static void first_line(char *const argv[], char *line, size_t size)
{
    posix_spawn_file_actions_t files;
    int ends[2];
    pid_t child;
    line[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int failed = posix_spawnp(&child, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    size_t len = 0;
    for (ssize_t n; !failed && len + 1 < size && (n = read(ends[0], line + len, size - 1 - len)) > 0;)
        len += (size_t)n;
    close(ends[0]);
    line[len] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (!failed)
        waitpid(child, NULL, 0);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void debug_place_text(const struct note_place *at, char *out, size_t size)
{
    char line[1024], address[32];
    if (!at->path[0]) {
        snprintf(out, size, "a place that is not known");
        return;
    }
    snprintf(address, sizeof(address), "0x%llx", (unsigned long long)at->offset - 1);
    first_line((char *[]){"addr2line", "-e", (char *)at->path, address, NULL}, line, sizeof(line));
    char *note = strstr(line, " (discriminator");
    if (note)
        *note = '\0';
    if (line[0] && line[0] != '?' && !strstr(line, ":?") && !strstr(line, ":0"))
        snprintf(out, size, "%s", base_name(line));
    else
        snprintf(out, size, "%s+0x%llx", base_name(at->path), (unsigned long long)at->offset);
}
