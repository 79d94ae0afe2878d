/* seal.h: the seal of a datagram: the sending process (when it was started, on its node's clock, so that a later process in the
 * same place has a larger number), a sequence number, and an authentication code over both, the header and the payload, which only a holder of the
 * fabric's key can make. A datagram that was seen before is dropped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SEAL_H
#define SOFTIB_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define SEAL_BYTES 24u

/* `head` is the header of the frame, the payload follows in n pieces. */
void seal_make(uint64_t instance, uint64_t number, const uint8_t *head, const struct iovec *iov, int n,
               uint8_t out[SEAL_BYTES]);
bool seal_good(const uint8_t seal[SEAL_BYTES], const uint8_t *head, const uint8_t *payload, size_t len);
/* Returns false if the process has sent this frame before, or the frame is too old to decide. The caller holds this
 * wire's lock. */
bool seal_fresh(const uint8_t seal[SEAL_BYTES], uint32_t node, uint32_t slot);

#endif
