/* cut.c: writes the record of a rank that a signal ends: its own crash, or a signal of the launcher (a
 * timeout, another rank's crash); the record names the interrupted call. The file is opened in MPI_Init with
 * a buffer of its own, because a signal handler must not allocate. A signal that the program handles is left
 * to the program.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prof.h"

/* Crashes of its own, and being ended from outside. */
static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGHUP, SIGXCPU};
enum { SIGNALS = sizeof(fatal) / sizeof(fatal[0]), CRASHES = 5 };

static FILE *out;
static char path[4096], buffer[1 << 16];
static struct sigaction before[SIGNALS]; /* handlers that were installed before, called after ours */
static bool taken[SIGNALS];

/* Returning repeats the fault, so that the previous handler receives it unchanged. Other signals are sent
 * again. */
static void cut_on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    for (int i = 0; i < SIGNALS; i++)
        if (fatal[i] == number)
            sigaction(number, &before[i], NULL);
    if (out && prof.pid == (int)getpid()) {
        prof_record_cut(out, number);
        fflush(out);
    }
    if (number == SIGABRT || info->si_code <= 0)
        raise(number);
}

/* The library's own crash handler runs after this one. Signals that the program handles itself do not end it. */
static void cut_catch_signals(void)
{
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction mine = {.sa_sigaction = cut_on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};
        if (sigaction(fatal[i], NULL, &before[i]) != 0)
            continue;
        bool free_to_take = before[i].sa_handler == SIG_DFL && !(before[i].sa_flags & SA_SIGINFO);
        taken[i] = (free_to_take || i < CRASHES) && before[i].sa_handler != SIG_IGN &&
                   sigaction(fatal[i], &mine, NULL) == 0;
    }
}

void prof_cut_begin(void)
{
    const char *folder = getenv("FISHPLATE_PROF");
    if (out || !folder || !*folder)
        return;
    snprintf(path, sizeof(path), "%s/cut-%d-%d.txt", folder, prof.rank, prof.pid);
    out = fopen(path, "we");
    if (!out)
        return; /* on another machine, for example */
    setvbuf(out, buffer, _IOFBF, sizeof(buffer));
    cut_catch_signals();
}

void prof_cut_end(void)
{
    if (!out || prof.pid != (int)getpid())
        return;
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction now;
        if (taken[i] && sigaction(fatal[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
            now.sa_sigaction == cut_on_signal)
            sigaction(fatal[i], &before[i], NULL);
    }
    fclose(out);
    out = NULL;
    unlink(path);
}
