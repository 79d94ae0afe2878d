/* between.h: interposes on the library's calls of fcntl: calls under both names of fcntl are passed to the
 * program's function intercept_fcntl.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_BETWEEN_H
#define FP_IO_BETWEEN_H

#include <stdarg.h>

int intercept_fcntl(int fd, int command, void *arg);

#define INTERCEPT_FCNTL(name)                     \
    int name(int fd, int command, ...)            \
    {                                             \
        va_list list;                             \
        va_start(list, command);                  \
        void *arg = va_arg(list, void *);         \
        va_end(list);                             \
        return intercept_fcntl(fd, command, arg); \
    }

INTERCEPT_FCNTL(fcntl)
INTERCEPT_FCNTL(fcntl64)

#endif
