/* t_ptracer.c: which processes may copy from and to this process under the Yama security module: the
 * process that SOFTIB_PTRACER names and its descendants; every process of the user if the variable is not
 * set or that process does not exist; none if it is not a number. The machine need not have Yama: the
 * prctl of this program replaces libc's and records the requests.
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
static unsigned requests;
static unsigned long unknown_process; /* process id for which prctl fails */

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
    if (requests < 4)
        requested[requests++] = arg[0];
    if (arg[0] == unknown_process) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

/* Checks the prctl requests for a value of SOFTIB_PTRACER in a child, since a process joins only once. */
static int check_setting(const char *setting, unsigned long no_such, unsigned n, unsigned long first,
                         unsigned long second)
{
    int status;
    pid_t pid = fork();
    if (!pid) {
        unknown_process = no_such;
        if (setting)
            setenv("SOFTIB_PTRACER", setting, 1);
        else
            unsetenv("SOFTIB_PTRACER");
        setenv("SOFTIB_LOG", "0", 1);
        struct ibv_device **list = ibv_get_device_list(NULL);
        struct ibv_context *c = list && list[0] ? ibv_open_device(list[0]) : NULL;
        _exit(!c                                                                                       ? 2
              : requests == n && (n < 1 || requested[0] == first) && (n < 2 || requested[1] == second) ? 0
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
    return check_setting("4321", 0, 1, 4321, 0) | check_setting(NULL, 0, 1, any, 0) |
           check_setting("4321", 4321, 2, 4321, any) | check_setting("43x", 0, 0, 0, 0) |
           check_setting("", 0, 0, 0, 0);
}
