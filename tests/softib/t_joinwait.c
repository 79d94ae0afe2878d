/* t_joinwait.c: while a stopped process of this user holds the join lock, another process gives up after
 * SOFTIB_JOIN_SECONDS, names the stopped process, and does not open the device. As soon as the lock is
 * released, the next process joins.
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

static int fail_test(const char *what, const char *more)
{
    fprintf(stderr, "FAILED: %s%s\n", what, more);
    return 1;
}

/* Joins in a child process and stores its standard error in `text`; returns errno of the attempt, 0 if the
 * child joined. */
static int join_in_child(char *text, size_t room)
{
    int ends[2], status;
    size_t got = 0;
    if (pipe(ends))
        return -1;
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], 2);
        alarm(40); /* ends a process that does not give up in time */
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
        return fail_test("SOFTIB_FABRIC: ", err);
    socklen_t len = abstract_name(&a, "softib/%016llx/lock.0", (unsigned long long)registry_key(&f));
    int lock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (lock < 0 || bind(lock, (struct sockaddr *)&a, len) || listen(lock, 64))
        return fail_test("cannot hold the lock", "");
    int got = join_in_child(text, sizeof(text));
    if (got != ETIMEDOUT)
        return fail_test("the join did not end with ETIMEDOUT; standard error: ", text);
    snprintf(name, sizeof(name), "cannot join the fabric: process %d has been joining it for 1 s", getpid());
    if (!strstr(text, name))
        return fail_test("the message does not name the stopped process: ", text);
    close(lock);
    if (join_in_child(text, sizeof(text)))
        return fail_test("the lock is free, but the join failed: ", text);
    fabric_free(&f);
    return 0;
}
