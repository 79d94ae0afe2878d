/* between.h: a program that stands between the library and fcntl: every call of it comes to stand_between, under both of its names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_BETWEEN_H
#define FP_IO_BETWEEN_H

#include <stdarg.h>

int stand_between(int fd, int command, void *arg);

#define STANDS_BETWEEN(name)                    \
    int name(int fd, int command, ...)          \
    {                                           \
        va_list list;                           \
        va_start(list, command);                \
        void *arg = va_arg(list, void *);       \
        va_end(list);                           \
        return stand_between(fd, command, arg); \
    }

STANDS_BETWEEN(fcntl)
STANDS_BETWEEN(fcntl64)

#endif
