/* library_watch.h: detects that the program has loaded a library; each check costs one memory load. A program
 * may load the GPU library at any time after MPI_Init, as Python programs do.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_LIBRARY_WATCH_H
#define FP_GPU_LIBRARY_WATCH_H

/* The `next` member of the last library in the dynamic linker's list: it is NULL until another library is
 * loaded. That last library stays loaded from now on, so that the member may be read at any time. NULL if
 * the dynamic linker offers no list. */
void *const *library_watch_get_list_end(void);

#endif
