/* place.c: places in the program, for messages about errors, leaks and mismatches. Runs addr2line.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/place.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/call_stack.h"

enum { FRAMES = 32, LOOKUP_MS = 2000 };

extern char **environ;

bool place_of_address(const void *address, struct code_place *out)
{
    Dl_info there;
    memset(out, 0, sizeof(*out));
    if (!dladdr((const char *)address - 1, &there) || !there.dli_fname)
        return false;
    /* The name of the program itself is argv[0], which may be relative. A path that does not fit cannot be
     * used. */
    if (there.dli_fname[0] != '/') {
        const ssize_t n = readlink("/proc/self/exe", out->path, sizeof(out->path) - 1);
        out->path[n > 0 ? n : 0] = '\0';
    } else if (strlen(there.dli_fname) < sizeof(out->path)) {
        strcpy(out->path, there.dli_fname);
    }
    /* Addresses in a program that is not position-independent equal those in its file. */
    const bool fixed = ((const ElfW(Ehdr) *)there.dli_fbase)->e_type == ET_EXEC;
    out->offset = (uintptr_t)address - (fixed ? 0 : (uintptr_t)there.dli_fbase);
    return out->path[0] != '\0';
}

void place_find_mpi_caller(struct code_place *out, char *call, size_t size)
{
    void *frames[FRAMES];
    const char *name = "";
    const int count = backtrace(frames, FRAMES);
    const int mpi = frames_find_mpi_call(frames, 0, count, &name);
    /* The MPI function has no frame after a tail call: the first frame outside of the library is then the
     * caller. */
    const int caller = frames_find_caller(frames, mpi, count);
    memset(out, 0, sizeof(*out));
    if (call)
        snprintf(call, size, "%s", mpi < 0 ? "" : name);
    if (caller >= 0)
        place_of_address(frames[caller], out);
}

/* Runs a command and reads its output within the time limit. Without a shell, since a path may contain any
 * character, and without fork, since memory may be registered. */
static bool read_command(char *const argv[], char *out, size_t size)
{
    posix_spawn_file_actions_t files;
    int ends[2];
    pid_t child;
    out[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0)
        return true;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int failed = posix_spawnp(&child, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    size_t len = 0;
    struct pollfd in = {.fd = ends[0], .events = POLLIN};
    bool in_time = true;
    while (!failed && len + 1 < size && (in_time = TEMP_FAILURE_RETRY(poll(&in, 1, LOOKUP_MS)) > 0)) {
        const ssize_t n = read(ends[0], out + len, size - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    close(ends[0]);
    out[len] = '\0';
    if (failed)
        return true;
    if (!in_time)
        kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return in_time;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool place_lookup(const struct code_place *at, char *function, size_t function_size, char *line,
                  size_t line_size)
{
    static atomic_bool slow; /* debug information of this program takes too long to read */
    char text[2048], address[32];
    if (!at->path[0] || atomic_load(&slow))
        return false;
    snprintf(address, sizeof(address), "0x%llx", (unsigned long long)at->offset - 1);
    if (!read_command((char *[]){"addr2line", "-f", "-e", (char *)at->path, address, NULL}, text,
                      sizeof(text)))
        atomic_store(&slow, true);
    /* Two lines: the function, and file:line. */
    char *second = strchr(text, '\n');
    if (!second)
        return false;
    *second++ = '\0';
    second[strcspn(second, "\n")] = '\0';
    char *note = strstr(second, " (discriminator");
    if (note)
        *note = '\0';
    if (!second[0] || second[0] == '?' || strstr(second, ":?") || strstr(second, ":0"))
        return false;
    snprintf(function, function_size, "%s", text);
    snprintf(line, line_size, "%s", base_name(second));
    return true;
}

void place_text(const struct code_place *at, char *out, size_t size)
{
    char function[256];
    if (!at->path[0])
        snprintf(out, size, "a place that is not known");
    else if (!place_lookup(at, function, sizeof(function), out, size))
        snprintf(out, size, "%s+0x%llx", base_name(at->path), (unsigned long long)at->offset);
}

void place_call_text(char *call, size_t call_size, char *out, size_t size)
{
    struct code_place at;
    char function[128], line[256];
    out[0] = '\0';
    place_find_mpi_caller(&at, call, call_size);
    if (place_lookup(&at, function, sizeof(function), line, sizeof(line)))
        snprintf(out, size, ", called by %s at %s", function, line);
}
