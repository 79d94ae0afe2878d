/* copy.h: copies between the memory of this process and that of another one. The last byte is stored
 * last, so that a program that polls the last byte of a message finds the message complete.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_COPY_H
#define SOFTIB_COPY_H

#include "memory/iov.h"
#include "memory/region.h"

/* Both return false if the other process has ended or its memory is unmapped. Both lists contain at least
 * `n` bytes. */
bool copy_to_peer(struct peer *to, struct rseg *dst, int nd, const struct iovec *src, int ns, uint64_t n);
bool copy_from_peer(struct peer *from, const struct rseg *src, int nsrc, const struct iovec *dst, int nd,
                    uint64_t n);

/* Copies to memory that this process can access, in increasing order of addresses, the last byte last. */
void copy_last_byte_last(char *dst, const char *src, size_t n);

/* Performs an 8-byte atomic operation at s: fetch-and-add of `operand` or, if cas, compare-and-swap. *old:
 * the former value. */
bool copy_atomic(struct peer *at, const struct rseg *s, bool cas, uint64_t operand, uint64_t swap,
                 uint64_t *old);

#endif
