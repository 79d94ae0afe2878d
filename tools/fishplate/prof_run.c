/* prof_run.c: runs a command with the profiler preloaded into its processes, and manages the folder of their
 * records.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/inside.h"
#include "prof.h"

#define LIBRARY "libfishplate-prof.so"

static volatile sig_atomic_t child;

bool prof_folder_make(char *out, size_t size)
{
    const char *under = getenv("TMPDIR");
    if (!under || under[0] != '/')
        under = "/tmp";
    snprintf(out, size, "%s/fishplate-prof-XXXXXX", under);
    if (mkdtemp(out))
        return true;
    fprintf(stderr,
            "fishplate prof: no folder for the records can be made in %s: %s. Set TMPDIR to one that can.\n",
            under, strerror(errno));
    return false;
}

void prof_folder_remove(const char *folder)
{
    char path[PATH_MAX + 256];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(folder);
}

/* Finds the profiler, which is installed next to the library. LD_PRELOAD has no quoting: a path with a
 * blank or colon is replaced by a symbolic link in `folder`. */
static bool find_library(const char *folder, char *out, size_t size)
{
    Dl_info where;
    char resolved[PATH_MAX] = "";
    if (dladdr((void *)(size_t)fishplate_inside, &where) && where.dli_fname)
        if (!realpath(where.dli_fname, resolved))
            resolved[0] = '\0';
    char *slash = strrchr(resolved, '/');
    if (slash)
        *slash = '\0';
    if (snprintf(out, size, "%s/" LIBRARY, resolved) >= (int)size || access(out, R_OK) != 0) {
        fprintf(stderr, "fishplate prof: %s is not there; it is installed together with libmpi_abi.so.1.\n",
                out);
        return false;
    }
    if (!strpbrk(out, " :"))
        return true;
    char link[PATH_MAX];
    snprintf(link, sizeof(link), "%s/" LIBRARY, folder);
    if (strpbrk(link, " :") || symlink(out, link) != 0) {
        fprintf(
            stderr,
            "fishplate prof: LD_PRELOAD cannot name %s, whose path has a blank or a colon, and a link to it "
            "cannot be made in %s. Set TMPDIR to a folder whose path has neither.\n",
            out, folder);
        return false;
    }
    snprintf(out, size, "%s", link);
    return true;
}

/* Sets LD_PRELOAD. Libraries already preloaded come first: a sanitizer's library must be the first. */
static void set_environment(const char *library, const char *folder)
{
    const char *before = getenv("LD_PRELOAD");
    char *both = NULL;
    size_t size;
    FILE *f = open_memstream(&both, &size);
    if (f) {
        fprintf(f, "%s%s%s", before ? before : "", before && *before ? ":" : "", library);
        fclose(f);
    }
    setenv("LD_PRELOAD", both ? both : library, 1);
    setenv("FISHPLATE_PROF", folder, 1);
    unsetenv("LD_BIND_NOW"); /* with LD_BIND_NOW the profiler could not be loaded into programs without MPI */
    free(both);
}

static void prof_forward_signal(int signal_number)
{
    if (child > 0)
        kill((pid_t)child, signal_number);
}

/* Ignores SIGINT and SIGQUIT, which the keyboard sends to the command too; forwards SIGTERM and SIGHUP. */
static void install_signal_handlers(struct sigaction old[2])
{
    struct sigaction ignore = {.sa_handler = SIG_IGN},
                     pass = {.sa_handler = prof_forward_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &ignore, &old[0]);
    sigaction(SIGQUIT, &ignore, &old[1]);
    sigaction(SIGTERM, &pass, NULL);
    sigaction(SIGHUP, &pass, NULL);
}

int prof_run(char **command, const char *folder)
{
    char library[PATH_MAX];
    struct sigaction old[2];
    int status;
    if (!find_library(folder, library, sizeof(library)))
        return 1;
    fflush(NULL);
    install_signal_handlers(old);
    const pid_t pid = fork();
    if (pid == 0) {
        sigaction(SIGINT, &old[0], NULL);
        sigaction(SIGQUIT, &old[1], NULL);
        set_environment(library, folder);
        execvp(command[0], command);
        fprintf(stderr, "fishplate prof: %s cannot be run: %s.\n", command[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
    }
    if (pid < 0) {
        fprintf(stderr, "fishplate prof: cannot start a process: %s.\n", strerror(errno));
        return 1;
    }
    child = pid;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 1;
    child = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
