/* cut.c: writes the record of a rank that a signal ends: its own crash, or a signal of the launcher (after a
 * timeout or another rank's crash); the record names the interrupted call. The file is opened in MPI_Init
 * with a buffer of its own, because a signal handler must not allocate. Except for crashes, a signal that the
 * program handles is not caught.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prof.h"

/* Crashes of the process (the first CRASHES), then signals from the launcher, the user or the kernel. */
static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGHUP, SIGXCPU};
enum { SIGNALS = sizeof(fatal) / sizeof(fatal[0]), CRASHES = 5 };

static FILE *out;
static char path[4096], buffer[1 << 16];
static struct sigaction before[SIGNALS]; /* previous handlers, restored before the signal is repeated */
static bool taken[SIGNALS];

/* Writes the record and restores the previous handler. Returning repeats a fault, so that the previous
 * handler receives it unchanged; other signals are raised again. */
static void cut_on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    for (int i = 0; i < SIGNALS; i++)
        if (fatal[i] == number)
            sigaction(number, &before[i], NULL);
    if (out && prof.pid == (int)getpid()) {
        prof_write_interrupted_record(out, number);
        fflush(out);
    }
    if (number == SIGABRT || info->si_code <= 0)
        raise(number);
}

/* Installs the handlers. Crash signals are caught even if the library or the program handles them, because
 * that handler runs afterwards; other signals only if they are not handled. */
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

void prof_start_catching_signals(void)
{
    const char *folder = getenv("FISHPLATE_PROF");
    if (out || !folder || !*folder)
        return;
    char name[64];
    snprintf(name, sizeof(name), "cut-%d-%d.txt", prof.rank, prof.pid);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    out = prof_create_file(folder, name);
    if (!out)
        return; /* the folder does not exist, for example on another machine */
    setvbuf(out, buffer, _IOFBF, sizeof(buffer));
    cut_catch_signals();
}

void prof_stop_catching_signals(void)
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
