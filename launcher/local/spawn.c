/* spawn.c: fork and exec. Unlike vfork, fork copies page tables, but it lets parent and child run at the same
 * time: on two busy cores sixteen ranks start in a third of the time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "local/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_WANTED 65536

static struct rlimit first_limit;
static sigset_t first_mask;

void spawn_save_limits(void)
{
    struct rlimit all;
    getrlimit(RLIMIT_NOFILE, &first_limit);
    sigprocmask(SIG_SETMASK, NULL, &first_mask);
    /* mpiexec needs three files per rank: the usual soft limit of 1024 would suffice for some 300 ranks. */
    all = first_limit;
    if (all.rlim_cur < FILES_WANTED)
        all.rlim_cur = all.rlim_max < FILES_WANTED ? all.rlim_max : FILES_WANTED;
    setrlimit(RLIMIT_NOFILE, &all);
}

/* Sets up descriptors 0, 1 and 2. Source descriptors are never below 3. */
static bool spawn_redirect_streams(const struct spawn *s)
{
    return dup2(s->in, 0) == 0 && dup2(s->out, 1) == 1 && dup2(s->err, 2) == 2;
}

struct spawn_fault *spawn_map_faults(uint32_t n)
{
    void *p = mmap(NULL, (n + 1) * sizeof(struct spawn_fault), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        launcher_die(1, "Out of memory.");
    return p;
}

/* Runs a script without a #! line by /bin/sh, as a shell does. Returns only on failure. */
static void spawn_exec_script(const struct spawn *s)
{
    size_t n = 0;
    while (s->argv[n])
        n++;
    char **argv = calloc(n + 2, sizeof(*argv));
    if (!argv)
        return;
    argv[0] = (char *)"sh";
    argv[1] = (char *)s->path;
    for (size_t i = 1; i < n; i++)
        argv[i + 1] = s->argv[i];
    execve("/bin/sh", argv, s->env);
}

/* Runs in the child. Returns only on failure, with the step that failed. */
static enum spawn_step spawn_exec_program(const struct spawn *s, pid_t parent)
{
    /* The rank gets a process group but not a session: where the kernel schedules processes by session
     * (autogroup), ranks that share processors could not yield to each other. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    /* A shell starts background jobs with INT and QUIT ignored; ranks must receive the signals that
     * mpiexec forwards. */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    setrlimit(RLIMIT_NOFILE, &first_limit);
    if (s->cpus)
        sched_setaffinity(0, sizeof(*s->cpus), (const cpu_set_t *)s->cpus);
    if (!spawn_redirect_streams(s))
        return SPAWN_FILES;
    for (const int *fd = s->keep; fd && *fd >= 0; fd++)
        fcntl(*fd, F_SETFD, 0);
    if (s->wdir && chdir(s->wdir) != 0)
        return SPAWN_WDIR;
    sigprocmask(SIG_SETMASK, &first_mask, NULL);
    execve(s->path, s->argv, s->env);
    if (errno == ENOEXEC)
        spawn_exec_script(s);
    return SPAWN_EXEC;
}

pid_t spawn_process(const struct spawn *s, struct spawn_fault *fault)
{
    sigset_t all, before;
    pid_t parent = getpid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        enum spawn_step step = spawn_exec_program(s, parent);
        if (fault)
            *fault = (struct spawn_fault){step, errno};
        _exit(127);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

/* True if the file can be run. Otherwise sets *why (EISDIR or EACCES), unless the file does not exist. */
static bool spawn_is_executable(const char *path, int *why)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    if (S_ISREG(st.st_mode) && access(path, X_OK) == 0)
        return true;
    *why = S_ISDIR(st.st_mode) ? EISDIR : EACCES;
    return false;
}

static char *spawn_join_path(const char *wdir, const char *folder, size_t len, const char *name)
{
    if (len == 0)
        return xstrf("%s/%s", wdir, name);
    if (folder[0] == '/')
        return xstrf("%.*s/%s", (int)len, folder, name);
    return xstrf("%s/%.*s/%s", wdir, (int)len, folder, name);
}

char *spawn_find(const char *name, const char *path_list, const char *wdir)
{
    int why = ENOENT;
    char *path;
    if (strchr(name, '/')) {
        path = name[0] == '/' ? xstrdup(name) : spawn_join_path(wdir, "", 0, name);
        if (spawn_is_executable(path, &why))
            return path;
    } else {
        const char *p = path_list ? path_list : "/usr/local/bin:/usr/bin:/bin";
        for (;; p++) {
            size_t len = strcspn(p, ":");
            path = spawn_join_path(wdir, p, len, name);
            if (spawn_is_executable(path, &why))
                return path;
            free(path);
            p += len;
            if (!*p)
                break;
        }
        path = spawn_join_path(wdir, "", 0, name);
        if (spawn_is_executable(path, &why))
            return path;
    }
    free(path);
    errno = why;
    return NULL;
}
