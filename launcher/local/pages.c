/* pages.c: reads status pages of ranks through the `fishplate` tool. The bytes are forwarded up the tree
 * unread; the tool that queried checks them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "local/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "local/tool.h"
#include "core/util.h"

#define PAGES_MAX (48u << 20) /* limit of a reply; a frame (link.c) holds more */

struct reading {
    struct loop *loop;
    struct watch from;
    struct timer sweep;
    struct buf in;
    uint32_t number;
    void (*done)(void *ctx, uint32_t number, const char *data, size_t len);
    void *ctx;
};

/* Frees `r` in a later iteration of the event loop: the current one may still refer to its watch. */
static void pages_on_sweep(void *ctx)
{
    free(ctx);
}

static void pages_finish(struct reading *r)
{
    loop_close(r->loop, &r->from);
    r->done(r->ctx, r->number, r->in.data ? buf_head(&r->in) : "", buf_size(&r->in));
    buf_free(&r->in);
    loop_set_timer(r->loop, &r->sweep, 0);
}

static void pages_on_bytes(void *ctx, uint32_t events)
{
    struct reading *r = ctx;
    char data[65536];
    (void)events;
    const ssize_t n = read(r->from.fd, data, sizeof(data));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0)
        buf_add(&r->in, data, (size_t)n);
    if (buf_size(&r->in) > PAGES_MAX)
        buf_consume(&r->in, buf_size(&r->in));
    else if (n > 0)
        return;
    pages_finish(r);
}

void pages_read(struct loop *l, const char *job, uint32_t number,
                void (*done)(void *ctx, uint32_t number, const char *data, size_t len), void *ctx)
{
    struct reading *r = xcalloc(1, sizeof(*r));
    *r = (struct reading){.loop = l, .number = number, .done = done, .ctx = ctx};
    r->from = (struct watch){.fd = -1, .fn = pages_on_bytes, .ctx = r};
    r->sweep = (struct timer){.fn = pages_on_sweep, .ctx = r};
    if (!tool_start(l, &r->from, TOOL_TO_PIPE, (char *[]){"fishplate", "ps", "--pages", (char *)job, NULL}))
        pages_finish(r);
}
