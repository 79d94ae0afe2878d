/* cut.c: a rank that is ended by a signal, by a crash of its own or by the launcher (a timeout, another rank's crash),
 * leaves its record all the same, and says which call it was in. The file is opened when MPI starts, with a buffer of its
 * own, because a signal handler must not allocate. A program that wants to be told before it is ended is left alone.
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
static struct sigaction before[SIGNALS]; /* whose turn it is afterwards */
static bool taken[SIGNALS];

/* A fault happens again when this returns, and then whoever handled it before sees it as it was. Other signals are sent
 * once more. */
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

/* The library, too, has a word to say about a crash: it has it after us. What the program handles by itself is not the
 * end. */
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
