/* seal.h: the seal of a datagram: the instance of the sending process (its start time, so that a later
 * process in the same slot has a larger number, also after a reboot of the host), a sequence number, and
 * an authentication code over both, the header and the payload, computed with the fabric's key. Repeated
 * datagrams are dropped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SEAL_H
#define SOFTIB_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define SEAL_BYTES 24u

/* The instance number of a process that starts now: nanoseconds since 1970. With a clock that starts at
 * boot, processes after a reboot would have smaller numbers than earlier ones, and their datagrams would
 * be dropped as old ones. */
uint64_t seal_new_instance(void);
/* Computes the seal of a datagram. head: its frame header; iov: its payload. */
void seal_create(uint64_t instance, uint64_t number, const uint8_t *head, const struct iovec *iov, int n,
                 uint8_t out[SEAL_BYTES]);
bool seal_is_valid(const uint8_t seal[SEAL_BYTES], const uint8_t *head, const uint8_t *payload, size_t len);
/* Returns false if the process has sent this frame before, or if the frame is too old to decide this. The
 * caller holds this wire's lock. */
bool seal_is_not_replayed(const uint8_t seal[SEAL_BYTES], uint32_t node, uint32_t slot);

#endif
