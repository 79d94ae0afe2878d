/* death_watcher.c: the child process of death_watcher.h. The system call clone creates it directly: no
 * fork handlers run, its end sends no signal to the program, and the program's own wait calls do not
 * return it. It closes all files but four and calls no function that allocates or locks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "boot/death_watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tunable.h"

#define FILES_MAX 65536 /* descriptors that are closed one by one if the kernel cannot close a range */

/* In the child, descriptors 3 to 5 are the pipe, the PMI connection and the rank's pidfd; standard error
 * stays open, all others are closed. */
enum { PIPE_FD = 3, PMI_FD_KEPT = 4, RANK_FD = 5, FIRST_CLOSED = 6 };

void child_close_files(unsigned first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return;
#endif
    for (unsigned fd = first; fd < FILES_MAX; fd++)
        close((int)fd);
}

static void place_inherited_descriptors(int pipe_end, int pmi, int rank)
{
    /* Duplicates the descriptors to numbers above all final ones first, so that no dup2 closes a descriptor
     * that is still needed. */
    int above[] = {fcntl(pipe_end, F_DUPFD, FIRST_CLOSED), pmi >= 0 ? fcntl(pmi, F_DUPFD, FIRST_CLOSED) : -1,
                   rank >= 0 ? fcntl(rank, F_DUPFD, FIRST_CLOSED) : -1};
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    dup2(above[0], PIPE_FD);
    close(PMI_FD_KEPT);
    if (above[1] >= 0)
        dup2(above[1], PMI_FD_KEPT);
    close(RANK_FD);
    if (above[2] >= 0)
        dup2(above[2], RANK_FD);
    child_close_files(FIRST_CLOSED);
}

void child_default_signals(void)
{
    sigset_t none;
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Waits until the rank has finished (true) or died (false). */
static bool wait_for_rank(bool has_rank)
{
    for (;;) {
        char byte;
        struct pollfd p[] = {{.fd = PIPE_FD, .events = POLLIN},
                             {.fd = has_rank ? RANK_FD : -1, .events = POLLIN}};
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return true;
        if (!p[0].revents && !p[1].revents)
            continue;
        ssize_t n = read(PIPE_FD, &byte, 1); /* does not block: the writer has written or ended */
        if (n < 0 && errno == EINTR)
            continue;
        return n == 1;
    }
}

/* Text for the child, which may not format or allocate text itself. */
struct last_message {
    char sentence[512], path[512], step[128];
};

_Noreturn static void death_watcher_body(int pipe_end, int pmi, int rank, const struct last_message *text)
{
    static const char request[] = "cmd=abort exitcode=1\n";
    const char *const scancel[] = {text->path, text->step, NULL};
    prctl(PR_SET_NAME, "fishplate-watch");
    child_default_signals();
    place_inherited_descriptors(pipe_end, pmi, rank);
    if (!wait_for_rank(rank >= 0)) {
        ssize_t n = write(STDERR_FILENO, text->sentence, strlen(text->sentence));
        if (pmi < 0)
            execv(text->path, (char *const *)(uintptr_t)scancel);
        else
            n = write(PMI_FD_KEPT, request, sizeof(request) - 1);
        (void)n;
    }
    syscall(SYS_exit_group, 0);
    for (;;)
        ;
}

/* Finds scancel in PATH. */
static bool find_scancel(char *out, size_t room)
{
    const char *at = env_get("PATH");
    for (size_t len; at && *at; at += len + (at[len] == ':')) {
        len = strcspn(at, ":");
        int n = snprintf(out, room, "%.*s/scancel", (int)len, at);
        if (len > 0 && n > 0 && (size_t)n < room && access(out, X_OK) == 0)
            return true;
    }
    return false;
}

void death_watcher_start(struct death_watcher *h, const struct boot *b, int pmi)
{
    int ends[2], rank = -1;
    struct last_message text;
    const char *job = env_get("SLURM_JOB_ID"), *step = env_get("SLURM_STEP_ID");
    *h = (struct death_watcher){.end = -1};
    if (b->size < 2 || !step || (pmi < 0 && (!job || !find_scancel(text.path, sizeof(text.path)))))
        return;
    snprintf(text.step, sizeof(text.step), "%s.%s", job ? job : "", step);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
#ifdef SYS_pidfd_open
    rank = (int)syscall(SYS_pidfd_open, getpid(), 0);
#endif
    snprintf(text.sentence, sizeof(text.sentence),
             "fishplate: Rank %u on %.200s ended before MPI_Finalize; the job is ended, because the other "
             "ranks would wait "
             "for it.\n",
             b->rank, b->host);
    pid_t pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
    if (pid == 0) {
        close(ends[1]);
        /* If the rank dies without writing a byte, its pidfd ends the poll; the read must not block then. */
        if (rank >= 0)
            fcntl(ends[0], F_SETFL, O_NONBLOCK);
        death_watcher_body(ends[0], pmi, rank, &text);
    }
    close(ends[0]);
    if (rank >= 0)
        close(rank);
    if (pid < 0) {
        close(ends[1]);
        return;
    }
    h->pid = pid;
    h->end = ends[1];
}

void death_watcher_stop(struct death_watcher *h)
{
    if (h->pid <= 0)
        return;
    ssize_t n = write(h->end, "", 1);
    (void)n;
    close(h->end);
    while (waitpid(h->pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    h->pid = 0;
}
