/* seal.h: the seal of a datagram: the sending process (when it was started, so that a later process in the
 * same place has a larger number, also after its host was booted again), a sequence number, and an authentication code over both, the header and the payload, which only a holder of the
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

/* The number of a process that starts now: nanoseconds since 1970. A clock that begins when the host is booted would give processes
 * smaller numbers than those before, and all their datagrams would be dropped as old ones. */
uint64_t seal_new_instance(void);
/* `head` is the header of the frame, the payload follows in n pieces. */
void seal_create(uint64_t instance, uint64_t number, const uint8_t *head, const struct iovec *iov, int n,
                 uint8_t out[SEAL_BYTES]);
bool seal_is_valid(const uint8_t seal[SEAL_BYTES], const uint8_t *head, const uint8_t *payload, size_t len);
/* Returns false if the process has sent this frame before, or the frame is too old to decide. The caller holds this
 * wire's lock. */
bool seal_is_not_replayed(const uint8_t seal[SEAL_BYTES], uint32_t node, uint32_t slot);

#endif
