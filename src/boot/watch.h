/* watch.h: ends the process when its launcher has died: a launcher that was killed cannot end its ranks. A
 * thread sleeps until the connection to the launcher closes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_WATCH_H
#define FP_BOOT_WATCH_H

#include <pthread.h>
#include <stdbool.h>

#include "boot/boot.h"

struct watch {
    const struct boot *boot;
    pthread_t thread;
    int fd, stop;
    bool running;
};

/* Ends the process when the other end of fd closes. A failure to start is not an error. */
void watch_start(struct watch *w, const struct boot *b, int fd);
void watch_stop(struct watch *w);

/* One rank of the node prints that the launcher is lost; then the process ends without clean-up. */
_Noreturn void watch_end_process(const struct boot *b);

#endif
