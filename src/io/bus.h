/* bus.h: copies to and from a mapping of a file that somebody may cut meanwhile. The kernel answers the touch of a page that is
 * gone with SIGBUS, which would end the program; between bus_watch_begin and bus_watch_end it is noted instead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_BUS_H
#define FP_IO_BUS_H

#include <stdbool.h>
#include <stddef.h>

struct bus_watch {
    char *at;
    size_t length;
    volatile bool cut; /* set by the handler */
};

/* While a file is open that may be mapped: installs the handler, and removes it with the last such file. */
void bus_open(void);
void bus_close(void);

/* The calling thread begins to access the mapping [at, at + length); at most one at a time. */
void bus_watch_begin(struct bus_watch *w, void *at, size_t length);
/* False: a part of the mapping was gone, and what was copied there is lost. Unmap it and do the same with system calls. */
bool bus_watch_end(struct bus_watch *w);

#endif
