/* log.c: writes each message by one write(2), so that lines of different ranks are not mixed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int log_threshold = LOG_WARN;

static char identity[320] = "";

void log_set_identity(int rank, const char *host)
{
    snprintf(identity, sizeof(identity), " (rank %d on %s)", rank, host);
}

void log_print(enum log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    if ((int)level > log_threshold)
        return;

    char line[2048];
    int used = snprintf(line, sizeof(line), "fishplate %s%s: ", names[level], identity);
    va_list args;
    va_start(args, fmt);
    int more = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, fmt, args);
    va_end(args);
    size_t len = MIN((size_t)(used + MAX(more, 0)), sizeof(line) - 2);
    line[len++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, len);
    (void)ignored;
}
