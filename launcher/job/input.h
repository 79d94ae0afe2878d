/* input.h: copies standard input if it is a terminal, or its readers are several ranks or on another host.
 * The next piece is read only when every reader has taken the last one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_INPUT_H
#define FP_LAUNCHER_INPUT_H

#include "core/loop.h"

struct input {
    struct loop *loop;
    struct watch w;
    struct timer
        again; /* a regular file is always readable: read the next piece from a timer instead of epoll */
    bool allowed, always_ready, ended;
    /* busy: readers that have not taken the last piece */
    uint32_t readers, busy;
    void (*send)(void *ctx, const char *data, size_t len); /* no bytes: end of file */
    void *ctx;
};

void input_start(struct input *in, struct loop *l, uint32_t readers, bool allowed,
                 void (*send)(void *ctx, const char *data, size_t len), void *ctx);

/* Called when one reader has taken its piece. */
void input_confirm_piece(struct input *in);

/* Permits reading from the terminal, or forbids it while this job is in the background. */
void input_set_allowed(struct input *in, bool yes);

#endif
