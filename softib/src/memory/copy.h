/* copy.h: moves bytes between this process and another one and stores the last bytes last, so that a program
 * that polls the end of a message finds the rest complete.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_COPY_H
#define SOFTIB_COPY_H

#include "memory/iov.h"
#include "memory/region.h"

/* Both return false when the other process or its memory is gone. `n` bytes fit in both lists. */
bool copy_to_peer(struct peer *to, struct rseg *dst, int nd, const struct iovec *src, int ns, uint64_t n);
bool copy_from_peer(struct peer *from, const struct rseg *src, int nsrc, const struct iovec *dst, int nd,
                    uint64_t n);

/* Copies into directly accessible memory, in order, the last byte last. */
void copy_last_byte_last(char *dst, const char *src, size_t n);

/* One 8-byte atomic at s (fetch-add, or compare-swap when cas); the old value in *old. */
bool copy_atomic(struct peer *at, const struct rseg *s, bool cas, uint64_t operand, uint64_t swap,
                 uint64_t *old);

#endif
