/* t_joinwait.c: a process of this user that holds the lock of joining and is stopped: a process that joins gives
 * up after SOFTIB_JOIN_SECONDS, names the process, and does not open the device. As soon
 * as it lets go, the next one joins.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/registry.h"
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int joinwait_failed(const char *what, const char *more)
{
    fprintf(stderr, "FAILED: %s%s\n", what, more);
    return 1;
}

/* In a process of its own, whose standard error is a pipe: the exit status is errno, 0 when it joined. */
static int join_apart(char *text, size_t room)
{
    int ends[2], status;
    size_t got = 0;
    if (pipe(ends))
        return -1;
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], 2);
        alarm(40); /* a process that does not give up would wait for a minute or without end */
        struct ibv_device **list = ibv_get_device_list(NULL);
        errno = 0;
        _exit(list && list[0] && ibv_open_device(list[0]) ? 0 : errno ? errno : 255);
    }
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], text + got, room - 1 - got)) > 0;)
        got += (size_t)n;
    text[got] = 0;
    close(ends[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(void)
{
    struct fabric f;
    struct sockaddr_un a;
    char text[4096], err[256], name[96];
    if (!fabric_parse(getenv("SOFTIB_FABRIC"), &f, err, sizeof(err)))
        return joinwait_failed("the fabric: ", err);
    socklen_t len = abstract_name(&a, "softib/%016llx/lock.0", (unsigned long long)registry_key(&f));
    int lock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (lock < 0 || bind(lock, (struct sockaddr *)&a, len) || listen(lock, 64))
        return joinwait_failed("cannot hold the lock", "");
    int got = join_apart(text, sizeof(text));
    if (got != ETIMEDOUT)
        return joinwait_failed("joining did not give up; it said: ", text);
    snprintf(name, sizeof(name), "cannot join the fabric: process %d has been joining it for 1 s", getpid());
    if (!strstr(text, name))
        return joinwait_failed("it did not say for whom it waited, but: ", text);
    close(lock);
    if (join_apart(text, sizeof(text)))
        return joinwait_failed("the lock is free, and yet: ", text);
    fabric_free(&f);
    return 0;
}
