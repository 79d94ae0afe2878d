/* input.c: copies standard input piece by piece.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "job/input.h"

#include <errno.h>
#include <unistd.h>

#define PIECE 32768

static void input_update_interest(struct input *in)
{
    bool ready = in->allowed && !in->ended && in->busy == 0 && in->readers > 0;
    if (!in->always_ready)
        loop_change_events(in->loop, &in->w, ready ? EPOLLIN : 0);
    else if (ready && in->again.at == 0)
        loop_set_timer(in->loop, &in->again, 0);
}

static void read_piece(struct input *in)
{
    static char data[PIECE];
    ssize_t n = read(STDIN_FILENO, data, sizeof(data));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    in->busy = in->readers;
    if (n <= 0) {
        in->ended = true;
        loop_remove(in->loop, &in->w);
        in->send(in->ctx, NULL, 0);
    } else {
        in->send(in->ctx, data, (size_t)n);
    }
    input_update_interest(in);
}

static void input_on_readable(void *ctx, uint32_t events)
{
    (void)events;
    read_piece(ctx);
}

static void input_on_retry(void *ctx)
{
    read_piece(ctx);
}

void input_start(struct input *in, struct loop *l, uint32_t readers, bool allowed,
                 void (*send)(void *ctx, const char *data, size_t len), void *ctx)
{
    *in = (struct input){.loop = l, .allowed = allowed, .readers = readers, .send = send, .ctx = ctx};
    in->w = (struct watch){.fd = -1, .fn = input_on_readable, .ctx = in};
    in->again = (struct timer){.fn = input_on_retry, .ctx = in};
    in->always_ready = !loop_add(l, &in->w, STDIN_FILENO, 0);
    input_update_interest(in);
}

void input_confirm_piece(struct input *in)
{
    if (in->busy > 0)
        in->busy--;
    if (in->loop)
        input_update_interest(in);
}

void input_set_allowed(struct input *in, bool yes)
{
    in->allowed = yes;
    if (in->loop)
        input_update_interest(in);
}
