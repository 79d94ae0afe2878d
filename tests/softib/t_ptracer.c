/* t_ptracer.c: who is let in to copy from and to this process where Yama restricts that: the process that
 * SOFTIB_PTRACER names and its descendants; every process of the user without it, and where there is no such
 * process; nobody when it is no number. The machine need not have Yama: prctl of this program takes the place
 * of libc's and records the requests to the kernel.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long requested[4];
static unsigned times;
static unsigned long unknown; /* the kernel knows no such process */

__attribute__((visibility("default"))) int prctl(int option, ...)
{
    unsigned long arg[4];
    va_list ap;
    va_start(ap, option);
    for (int i = 0; i < 4; i++)
        arg[i] = va_arg(ap, unsigned long);
    va_end(ap);
    if (option != PR_SET_PTRACER)
        return (int)syscall(SYS_prctl, option, arg[0], arg[1], arg[2], arg[3]);
    if (times < 4)
        requested[times++] = arg[0];
    if (arg[0] == unknown) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

/* In a process of its own, since one joins once. */
static int case_of(const char *setting, unsigned long no_such, unsigned n, unsigned long first,
                   unsigned long second)
{
    int status;
    pid_t pid = fork();
    if (!pid) {
        unknown = no_such;
        if (setting)
            setenv("SOFTIB_PTRACER", setting, 1);
        else
            unsetenv("SOFTIB_PTRACER");
        setenv("SOFTIB_LOG", "0", 1);
        struct ibv_device **list = ibv_get_device_list(NULL);
        struct ibv_context *c = list && list[0] ? ibv_open_device(list[0]) : NULL;
        _exit(!c                                                                                    ? 2
              : times == n && (n < 1 || requested[0] == first) && (n < 2 || requested[1] == second) ? 0
                                                                                                    : 1);
    }
    waitpid(pid, &status, 0);
    if (status)
        fprintf(stderr, "FAILED: SOFTIB_PTRACER=%s: %s\n", setting ? setting : "(unset)",
                WIFEXITED(status) && WEXITSTATUS(status) == 1 ? "somebody else was let in"
                                                              : "it did not join");
    return status != 0;
}

int main(void)
{
    const unsigned long any = PR_SET_PTRACER_ANY;
    return case_of("4321", 0, 1, 4321, 0) | case_of(NULL, 0, 1, any, 0) |
           case_of("4321", 4321, 2, 4321, any) | case_of("43x", 0, 0, 0, 0) | case_of("", 0, 0, 0, 0);
}
