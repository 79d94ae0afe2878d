/* sink.h: a destination of output: standard output, standard error or a file. Writes never block: bytes that
 * the reader does not accept yet are queued. The first error is recorded, so that lost output can be
 * reported.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_SINK_H
#define FP_LAUNCHER_SINK_H

#include "core/loop.h"
#include "core/util.h"

struct sink {
    struct loop *loop;
    int fd;
    char *name; /* for messages */
    bool always_ready, is_file;
    int error; /* errno of the write that failed; later output is dropped */
    struct watch w;
    struct buf out;
    void (*written)(void *ctx); /* some queued output was written */
    void *ctx;
};

/* `name` is copied. */
struct sink *sink_new(struct loop *l, int fd, const char *name, void (*written)(void *ctx), void *ctx);
void sink_add(struct sink *s, const char *data, size_t len);

/* Writes as much as the reader accepts without blocking. */
void sink_flush(struct sink *s);

/* Writes everything; waits for the reader until `end` (now_ms). */
void sink_finish(struct sink *s, uint64_t end);

/* Closes a file; standard output and error stay open. Call it once, after the last sink_finish(). */
void sink_close(struct sink *s);

#endif
