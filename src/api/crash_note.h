/* crash_note.h: writes what is known about a crash. Runs in a copy of the process that crashed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_CRASH_NOTE_H
#define FP_API_CRASH_NOTE_H

#include <signal.h>
#include <ucontext.h>

struct crash_who {
    int rank;
    char host[256];
    char plain[320]; /* beginning of the line that is printed if the note cannot be written */
};

void crash_note(const struct crash_who *who, int sig, const siginfo_t *info, const ucontext_t *context);

#endif
