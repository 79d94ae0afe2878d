/* launcher_watch.h: ends the process when its launcher has died: a launcher that was killed cannot end its
 * ranks. A thread sleeps until the connection to the launcher closes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_LAUNCHER_WATCH_H
#define FP_BOOT_LAUNCHER_WATCH_H

#include <pthread.h>
#include <stdbool.h>

#include "boot/boot.h"

struct launcher_watch {
    const struct boot *boot;
    pthread_t thread;
    int fd, stop;
    bool running;
};

/* Ends the process when the other end of fd closes. A failure to start is not an error. */
void launcher_watch_start(struct launcher_watch *w, const struct boot *b, int fd);
void launcher_watch_stop(struct launcher_watch *w);

/* One rank of the node prints that the launcher is lost; then the process ends without clean-up. */
_Noreturn void launcher_watch_end_process(const struct boot *b);

#endif
