/* bus.h: copies to a mapping of a file that another process may truncate. The kernel answers an access to
 * a page behind the end of the file with SIGBUS, which would end the program. Between bus_watch_begin and
 * bus_watch_end the signal is recorded instead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_BUS_H
#define FP_IO_BUS_H

#include <stdbool.h>
#include <stddef.h>

struct bus_watch {
    char *at; /* the mapping */
    size_t length;
    volatile bool truncated; /* set by the signal handler */
};

/* Called for each file that may be mapped. The first bus_open installs the signal handler, the last
 * bus_close removes it. */
void bus_open(void);
void bus_close(void);

/* The calling thread begins to access the mapping; a thread has at most one at a time. */
void bus_watch_begin(struct bus_watch *w);
/* Returns false if the file was truncated, so that stores to the mapping are lost. The caller must then unmap
 * it and repeat the stores by system calls. */
bool bus_watch_end(struct bus_watch *w);

#endif
