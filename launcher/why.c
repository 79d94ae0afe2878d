/* why.c: runs `fishplate why` as a child process. When the child has ended, its end of a pipe is closed,
 * which is an event of the loop; the process itself is reaped with the others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "why.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PATIENCE_MS 15000

struct asking {
    struct job *job;
    struct watch end; /* readable once the doctor has gone */
    struct timer limit;
    void (*done)(struct job *j);
};

static void finish(struct asking *a)
{
    void (*done)(struct job *) = a->done;
    a->done = NULL;
    loop_cancel(&a->job->loop, &a->limit);
    if (done)
        done(a->job);
}

/* The memory stays: a watch must outlive the turn in which it is removed, and questions are few. */
static void on_end(void *ctx, uint32_t events)
{
    struct asking *a = ctx;
    (void)events;
    loop_close(&a->job->loop, &a->end);
    finish(a);
}

static void on_limit(void *ctx)
{
    finish(ctx);
}

static _Noreturn void become_doctor(int keep, const char *tool, char *const argv[])
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    fcntl(keep, F_SETFD, 0); /* closed when the doctor ends */
    execv(tool, argv);
    dprintf(STDERR_FILENO, "mpiexec: Cannot run %s, which would say what the ranks wait for: %s.\n", tool,
            strerror(errno));
    _exit(127);
}

/* False when there is no doctor. */
static bool start(struct asking *a, char *const argv[])
{
    char tool[PATH_MAX + 16];
    int ends[2];
    snprintf(tool, sizeof(tool), "%s", self_path());
    char *slash = strrchr(tool, '/');
    snprintf(slash ? slash + 1 : tool, sizeof(tool) - (size_t)(slash ? slash + 1 - tool : 0), "fishplate");
    if (access(tool, X_OK) != 0 || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    const pid_t child = fork();
    if (child == 0)
        become_doctor(ends[1], tool, argv);
    close(ends[1]);
    if (child < 0 || !loop_add(&a->job->loop, &a->end, ends[0], EPOLLIN)) {
        close(ends[0]);
        return false;
    }
    return true;
}

static struct asking *asking_new(struct job *j, void (*done)(struct job *))
{
    struct asking *a = xcalloc(1, sizeof(*a));
    *a = (struct asking){.job = j, .done = done};
    a->end = (struct watch){.fd = -1, .fn = on_end, .ctx = a};
    a->limit = (struct timer){.fn = on_limit, .ctx = a};
    return a;
}

void why_ask(struct job *j, void (*done)(struct job *))
{
    struct asking *a = asking_new(j, done);
    if (start(a, (char *[]){"fishplate", "why", "--if-any", (char *)j->id, NULL}))
        loop_after(&j->loop, &a->limit, PATIENCE_MS);
    else
        finish(a);
}

void why_watch(struct job *j, long seconds)
{
    char text[32];
    snprintf(text, sizeof(text), "%ld", seconds);
    if (!start(asking_new(j, NULL),
               (char *[]){"fishplate", "why", "--hang-after", text, (char *)j->id, NULL}))
        say("-hang-after needs the fishplate tool beside mpiexec, which is not there.");
}
