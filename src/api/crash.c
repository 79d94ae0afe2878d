/* crash.c: handlers of the signals of a crash. A signal handler may call almost nothing, so a forked copy of
 * the process writes the note (crash_note.c). If that copy hangs or crashes itself, as it may when memory is
 * damaged, it is killed and one plain line is written instead. Then the signal takes its default action, with
 * a core dump where the user's limits allow one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "api/crash.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/crash_note.h"
#include "base/tunable.h"
#include "base/util.h"
#include "boot/boot.h"

static TUNABLE_BOOL(
    crash_notes, "CRASH_NOTE", 1,
    "When SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT ends a rank, print the rank, the address, the MPI "
    "call with its arguments and the call stack. Core dumps stay as the limits say, and a handler that "
    "the program has set is left alone. Set it to 0 to leave these signals to the system.");

enum { ALTERNATE_STACK = 128 << 10, PATIENCE_MS = 5000 };

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static struct {
    struct crash_who who;
    struct sigaction before[COUNT_OF(signals)]; /* the former handlers, restored afterwards */
    bool ours[COUNT_OF(signals)];               /* our handler is installed */
    void *stack;
    _Atomic pid_t busy; /* the thread that crashed first */
} crash;

/* Prints one line if memory is too damaged for the full report. The text was prepared at start; only
 * async-signal-safe calls. */
static void print_plain_line(int sig)
{
    char line[512];
    size_t n = strlen(crash.who.plain), i = 0;
    memcpy(line, crash.who.plain, n);
    char digits[3] = {(char)('0' + sig / 10), (char)('0' + sig % 10), '\n'};
    for (i = sig < 10; i < sizeof(digits); i++)
        line[n++] = digits[i];
    ssize_t ignored = write(STDERR_FILENO, line, n);
    (void)ignored;
}

/* Writes the report from a forked copy, which has the memory of this moment and one thread. The copy must not
 * outlive this process or call the program's handlers. */
static bool report_from_forked_copy(int sig, const siginfo_t *info, const ucontext_t *context)
{
    /* Unlike fork(), this causes no SIGCHLD and calls no atfork handlers. */
    const pid_t child = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
    if (child == 0) {
        crash_note(&crash.who, sig, info, context);
        syscall(SYS_exit_group, 0);
    }
    int status = 1;
    for (int ms = 0; child > 0 && ms < PATIENCE_MS; ms++) {
        const pid_t ended = waitpid(child, &status, WNOHANG | __WALL);
        if (ended == child)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (ended < 0 && errno != EINTR)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, __WALL);
    }
    return false;
}

static size_t signal_index(int sig)
{
    size_t i = 0;
    while (i < COUNT_OF(signals) - 1 && signals[i] != sig)
        i++;
    return i;
}

static void on_crash_signal(int sig, siginfo_t *info, void *context)
{
    const int saved = errno;
    const pid_t me = (pid_t)syscall(SYS_gettid);
    pid_t nobody = 0;
    if (atomic_compare_exchange_strong(&crash.busy, &nobody, me)) {
        if (!report_from_forked_copy(sig, info, context))
            print_plain_line(sig);
    } else if (nobody != me) {
        for (;;) /* another thread writes its report and ends the process */
            pause();
    }
    /* The former handler is restored: the same instruction fails again, or the same signal is sent again. */
    sigaction(sig, &crash.before[signal_index(sig)], NULL);
    if (info->si_code <= 0)
        syscall(SYS_tgkill, getpid(), me, sig);
    errno = saved;
}

/* True if our handler may replace this one. Fortran's run-time library sets handlers before the program
 * starts, which print a call stack and end the process as ours do, so ours may run first; any other handler
 * is the program's own. */
static bool can_precede_handler(const struct sigaction *there)
{
    Dl_info library;
    if (there->sa_handler == SIG_DFL)
        return true;
    return there->sa_handler != SIG_IGN && dladdr((void *)there->sa_handler, &library) && library.dli_fname &&
           strstr(library.dli_fname, "libgfortran");
}

/* Sets an alternate signal stack, so that the handler can run after a stack overflow. */
static void set_alternate_stack(void)
{
    stack_t there;
    if (sigaltstack(NULL, &there) != 0 || !(there.ss_flags & SS_DISABLE))
        return;
    void *memory = mmap(NULL, ALTERNATE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return;
    if (sigaltstack(&(stack_t){.ss_sp = memory, .ss_size = ALTERNATE_STACK}, NULL) == 0)
        crash.stack = memory;
    else
        munmap(memory, ALTERNATE_STACK);
}

void crash_open(const struct boot *boot)
{
    struct sigaction mine = {.sa_sigaction = on_crash_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (!crash_notes.value)
        return;
    crash.who.rank = (int)boot->rank;
    snprintf(crash.who.host, sizeof(crash.who.host), "%s", boot->host);
    snprintf(crash.who.plain, sizeof(crash.who.plain),
             "fishplate error (rank %d on %.200s): the process ends by signal ", crash.who.rank,
             crash.who.host);
    set_alternate_stack();
    sigemptyset(&mine.sa_mask);
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        if (sigaction(signals[i], NULL, &crash.before[i]) == 0 && can_precede_handler(&crash.before[i]))
            crash.ours[i] = sigaction(signals[i], &mine, NULL) == 0;
    }
}

/* Restores the handlers, since the library may be unloaded after MPI_Finalize. A handler that the program
 * has set since is kept. */
void crash_close(void)
{
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        struct sigaction now;
        if (crash.ours[i] && sigaction(signals[i], NULL, &now) == 0 && now.sa_sigaction == on_crash_signal)
            sigaction(signals[i], &crash.before[i], NULL);
        crash.ours[i] = false;
    }
    stack_t there;
    if (crash.stack && sigaltstack(NULL, &there) == 0 && there.ss_sp == crash.stack &&
        !(there.ss_flags & SS_ONSTACK)) {
        sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
        munmap(crash.stack, ALTERNATE_STACK);
    }
    crash.stack = NULL;
}
