/* err.c: the last error message of each thread, and how the process ends when a CHECK fails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/err_state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"

static _Thread_local struct err_state last;

/* The last error that was reported to the program. counts: for each error class (modulo 128), errors reported
 * since the program last called MPI_Error_string for that class. */
static _Thread_local struct {
    int errclass;
    char text[MPI_MAX_ERROR_STRING];
    unsigned counts[128];
    bool requested[128]; /* MPI_Error_string was called: the next error of this class restarts the count */
} reported;

static bool space_is_limited(void)
{
    struct rlimit space;
    return getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
}

int err_set(int errclass, const char *fmt, ...)
{
    char text[sizeof(last.text)]; /* a copy, since the arguments may include last.text */
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    const size_t len = strlen(text);
    if (errclass == MPI_ERR_NO_MEM && space_is_limited() && !strstr(text, "ulimit -v"))
        snprintf(text + len, sizeof(text) - len, "; the limit of address space may be too low (ulimit -v)");
    memcpy(last.text, text, strlen(text) + 1);
    last.errclass = errclass;
    return errclass;
}

const char *err_detail(int errclass)
{
    return last.errclass == errclass ? last.text : "";
}

static size_t err_class_slot(int errclass)
{
    return (unsigned)errclass % COUNT_OF(reported.counts);
}

void err_report(int errclass)
{
    reported.errclass = errclass;
    snprintf(reported.text, sizeof(reported.text), "%s", err_detail(errclass));
    const size_t slot = err_class_slot(errclass);
    reported.counts[slot] = reported.requested[slot] ? 1 : reported.counts[slot] + 1;
    reported.requested[slot] = false;
}

const char *err_get_reported(int errclass, unsigned *count)
{
    const size_t slot = err_class_slot(errclass);
    *count = reported.counts[slot];
    if (*count == 0 && reported.errclass != errclass)
        return err_detail(errclass);
    reported.requested[slot] = true;
    return reported.errclass == errclass ? reported.text : "";
}

const char *err_reason(int number)
{
    switch (number) {
    case EMFILE:
    case ENFILE:
        return "Too many open files; raise the limit of open files (ulimit -n)";
    case EAGAIN: /* here only pthread_create returns EAGAIN */
        return "Resource temporarily unavailable; raise the limit of processes and threads (ulimit -u)";
    case ENOMEM:
        return space_is_limited()
                   ? "Cannot allocate memory; the limit of address space may be too low (ulimit -v)"
                   : strerror(number);
    default:
        return strerror(number);
    }
}

struct err_state err_save(void)
{
    return last;
}

void err_restore(const struct err_state *saved)
{
    last = *saved;
}

void err_clear(void)
{
    last.errclass = MPI_SUCCESS;
    last.text[0] = '\0';
}

void err_panic(const char *file, int line, const char *sentence)
{
    log_error("%s (%s:%d)", sentence, file, line);
    abort();
}
