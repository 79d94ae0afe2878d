/* pack.h: encodes numbers and strings for another host: numbers in network byte order, strings with a length
 * prefix. The decoder checks every length against the remaining bytes, since they arrive from a network.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_PACK_H
#define FP_LAUNCHER_PACK_H

#include "core/util.h"

void pack_u32(struct buf *out, uint32_t v);
void pack_str(struct buf *out, const char *s);
void pack_list(struct buf *out, char *const *list); /* ended by NULL */

/* A decoder. `bad` becomes true at the first missing field; later numbers are 0, later strings empty. */
struct unpack {
    const char *at;
    size_t left;
    bool bad;
};

uint32_t unpack_u32(struct unpack *r);
char *unpack_str(struct unpack *r); /* allocated */
char **unpack_list(struct unpack *r);

/* Reads a number of items, each of at least `least` bytes; more than the remaining bytes can hold is an
 * error. */
uint32_t unpack_count(struct unpack *r, size_t least);

#endif
