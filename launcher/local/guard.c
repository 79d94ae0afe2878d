/* guard.c: the front process forwards signals as bytes on a pipe; end of file on the pipe notifies the worker
 * that the front process is gone. Between the two is the reaper, which only waits for the worker. All three
 * are subreapers, so that no process of the job can escape by losing its parent: whichever of the three is
 * left ends all descendants of the others. (A control group would not help: if all three are gone, no process
 * writes to its cgroup.kill.)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "local/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "local/descend.h"
#include "local/spawn.h"
#include "core/util.h"

/* Bytes on the pipe: a signal number, or one of these values. */
enum { WORD_FOREGROUND = 200, WORD_BACKGROUND = 201 };

static const int forwarded[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

static void guard_get_forwarded_signals(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < COUNT_OF(forwarded); i++) {
        struct sigaction now;
        /* If SIGHUP is ignored (nohup), it stays ignored. */
        if (forwarded[i] == SIGHUP && sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            continue;
        sigaddset(set, forwarded[i]);
    }
}

bool guard_in_background(void)
{
    return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) != getpgrp();
}

static void guard_write_byte(int fd, unsigned char word)
{
    ssize_t n = write(fd, &word, 1);
    (void)n; /* if the worker has ended, SIGCHLD reports it */
}

static int guard_get_exit_status(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    message_print("The worker process of mpiexec was killed by signal %d (%s). All ranks were ended.",
                  WTERMSIG(status), strsignal(WTERMSIG(status)));
    return 128 + WTERMSIG(status);
}

/* Waits for one of the set's signals and consumes it; SIGTSTP stays pending, for guard_stop_self. */
static int next_signal(int peek, const sigset_t *set)
{
    struct pollfd p = {.fd = peek, .events = POLLIN};
    sigset_t others = *set, pending;
    sigdelset(&others, SIGTSTP);
    poll(&p, 1, -1);
    int sig = sigtimedwait(&others, NULL, &(struct timespec){0});
    if (sig > 0)
        return sig;
    sigpending(&pending);
    return sigismember(&pending, SIGTSTP) ? SIGTSTP : 0;
}

/* Stops this process by the pending SIGTSTP. A SIGCONT that arrived in between has discarded the SIGTSTP;
 * raise(SIGSTOP) would instead discard the SIGCONT and stop the process for good. */
static void guard_stop_self(void)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    sigprocmask(SIG_BLOCK, &stop, NULL);
}

/* Runs the front process: it forwards signals until the worker ends. */
static int guard_run_front_process(pid_t worker, int pipe_end, const sigset_t *set)
{
    bool interrupted = false;
    int peek = signalfd(-1, set, SFD_CLOEXEC);
    if (peek < 0)
        launcher_die(1, "mpiexec cannot watch signals: %s.", strerror(errno));
    signal(SIGTSTP, SIG_DFL);
    for (;;) {
        int sig = next_signal(peek, set), status;
        if (sig == SIGCHLD) {
            if (waitpid(worker, &status, WNOHANG) != worker)
                continue;
            int result = guard_get_exit_status(status);
            descend_end();
            /* A loop in a shell script stops only if mpiexec itself dies of the SIGINT that ended the job. */
            if (interrupted && result == 128 + SIGINT) {
                signal(SIGINT, SIG_DFL);
                sigprocmask(SIG_UNBLOCK, set, NULL);
                raise(SIGINT);
            }
            return result;
        }
        if (sig <= 0)
            continue;
        interrupted = interrupted || sig == SIGINT;
        if (sig == SIGCONT)
            guard_write_byte(pipe_end, guard_in_background() ? WORD_BACKGROUND : WORD_FOREGROUND);
        guard_write_byte(pipe_end, (unsigned char)sig);
        if (sig == SIGTSTP)
            guard_stop_self();
    }
}

/* Renames this process, so that `killall -9 mpiexec` does not end the one that cleans up. */
static void rename_process(char **argv, const char *name)
{
    prctl(PR_SET_NAME, name);
    size_t room = strlen(argv[0]);
    memset(argv[0], 0, room);
    memcpy(argv[0], name, room < strlen(name) ? room : strlen(name));
}

_Noreturn static void run_worker(char **argv, int (*worker)(void *ctx, int front), void *ctx, int pipe_end)
{
    descend_become_subreaper();
    signal(SIGPIPE, SIG_IGN);
    /* a write beyond the file size limit must fail with EFBIG, not end the process */
    signal(SIGXFSZ, SIG_IGN);
    rename_process(argv, "fishplate-guard");
    int status = worker(ctx, pipe_end);
    /* Processes that ranks left running end with the job. */
    descend_end();
    _exit(status);
}

/* Waits for the worker, ends its descendants, and ends with the same status or signal. */
_Noreturn static void run_reaper(char **argv, pid_t worker)
{
    int status = 0;
    rename_process(argv, "fishplate-reaper");
    close(STDOUT_FILENO); /* a reader of the output waits until every writer has closed it */
    close(STDIN_FILENO);
    while (waitpid(worker, &status, 0) < 0 && errno == EINTR)
        ;
    descend_end();
    if (WIFSIGNALED(status)) {
        sigset_t all;
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(WTERMSIG(status), SIG_DFL);
        sigfillset(&all);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
        raise(WTERMSIG(status));
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

int guard_run(char **argv, int (*worker)(void *ctx, int front), void *ctx)
{
    int ends[2];
    sigset_t set;
    spawn_save_limits();
    descend_become_subreaper();
    guard_get_forwarded_signals(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (pipe2(ends, O_CLOEXEC) != 0)
        launcher_die(1, "mpiexec cannot create a pipe: %s.", error_reason(errno));
    pid_t pid = fork();
    if (pid < 0)
        launcher_die(1, "mpiexec cannot create a process: %s.", error_reason(errno));
    if (pid == 0) {
        close(ends[1]);
        setsid();
        descend_become_subreaper();
        pid = fork();
        if (pid < 0)
            launcher_die(1, "mpiexec cannot create a process: %s.", error_reason(errno));
        if (pid == 0)
            run_worker(argv, worker, ctx, ends[0]);
        close(ends[0]);
        run_reaper(argv, pid);
    }
    close(ends[0]);
    signal(SIGPIPE, SIG_IGN);
    return guard_run_front_process(pid, ends[1], &set);
}

struct guard {
    struct watch pipe, direct;
    struct loop *loop;
    const struct guard_events *ev;
    void *ctx;
};

static void guard_on_forwarded_signal(void *ctx, uint32_t events)
{
    struct guard *g = ctx;
    unsigned char words[64];
    ssize_t n = read(g->pipe.fd, words, sizeof(words));
    (void)events;
    if (n < 0)
        return;
    if (n == 0) {
        loop_close(g->loop, &g->pipe);
        g->ev->front_died(g->ctx);
        return;
    }
    for (ssize_t i = 0; i < n; i++) {
        if (words[i] == WORD_FOREGROUND || words[i] == WORD_BACKGROUND)
            g->ev->foreground(g->ctx, words[i] == WORD_FOREGROUND);
        else
            g->ev->signal(g->ctx, words[i]);
    }
}

static void guard_on_worker_signal(void *ctx, uint32_t events)
{
    struct guard *g = ctx;
    struct signalfd_siginfo info;
    (void)events;
    while (read(g->direct.fd, &info, sizeof(info)) == sizeof(info))
        g->ev->signal(g->ctx, (int)info.ssi_signo);
}

void guard_watch_signals(struct loop *l, int front_fd, const struct guard_events *ev, void *ctx)
{
    struct guard *g = xcalloc(1, sizeof(*g));
    sigset_t set;
    *g = (struct guard){.loop = l, .ev = ev, .ctx = ctx};
    g->pipe = (struct watch){.fd = -1, .fn = guard_on_forwarded_signal, .ctx = g};
    g->direct = (struct watch){.fd = -1, .fn = guard_on_worker_signal, .ctx = g};
    fcntl(front_fd, F_SETFL, O_NONBLOCK);
    loop_add(l, &g->pipe, front_fd, EPOLLIN);
    guard_get_forwarded_signals(&set);
    sigdelset(&set, SIGTSTP);
    loop_add(l, &g->direct, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), EPOLLIN);
}
