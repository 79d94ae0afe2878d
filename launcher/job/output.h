/* output.h: where the output of the ranks goes: mpiexec's own standard output and error, or one file per
 * rank. Lines of different ranks never mix. A slow reader slows the ranks down instead of filling mpiexec's
 * memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_OUTPUT_H
#define FP_LAUNCHER_OUTPUT_H

#include "core/loop.h"
#include "core/util.h"

struct output;

struct output_options {
    const char *prefix;                               /* prefix of each line, with %r and %h; NULL: none */
    const char *out_pattern, *err_pattern;            /* -outfile-pattern, -errfile-pattern; may be NULL */
    uint32_t size;                                    /* number of ranks */
    const char *(*host_of)(void *ctx, uint32_t rank); /* host name of a rank, for %h */
    /* called with true if too many bytes are queued, with false when few are left */
    void (*pause)(void *ctx, bool pause);
    void (*drained)(void *ctx);   /* all queued output is written */
    void (*no_reader)(void *ctx); /* the reader of standard output has closed it; called once */
    /* Writing to this file failed with `error` (errno); later output to it is lost. Called once for each
     * file. */
    void (*failed)(void *ctx, const char *name, int error);
    void *ctx;
};

struct output *output_new(struct loop *l, const struct output_options *o);

/* Handles bytes of one rank's stream 1 or 2; no bytes: the stream has ended. */
void output_write(struct output *o, uint32_t rank, int stream, const char *data, size_t len);

/* True if no output is queued. */
bool output_idle(const struct output *o);

/* Writes complete lines; blocks for the reader at most `ms` milliseconds. */
void output_sync(struct output *o, uint64_t ms);

/* Writes queued output and closes the files; blocks for the reader at most `ms` milliseconds. No output_write()
 * may follow. */
void output_close(struct output *o, uint64_t ms);

#endif
