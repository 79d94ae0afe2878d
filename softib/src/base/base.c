/* base.c: clock, messages to the user, locks and random numbers of softib.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void softib_log(const char *fmt, ...)
{
    const char *v = getenv("SOFTIB_LOG");
    if (v && !strcmp(v, "0"))
        return;
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    fprintf(stderr, "softib: %s\n", line);
}

void spin_wait(unsigned *turn)
{
    if (++*turn % 64)
        cpu_relax();
    else
        sched_yield();
}

void random_bytes(void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = getrandom((char *)p + at, n - at, 0);
        if (got < 0 && errno != EINTR) {
            softib_log("cannot get random numbers from the kernel (getrandom): %s", strerror(errno));
            abort();
        }
        at += got > 0 ? (size_t)got : 0;
    }
}
