/* chunk.h: encodes bytes as text for key-value stores of short printable words: the length, and base64
 * without padding. The caller divides the text into pieces of PMI_CHUNK characters. Pure functions.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_CHUNK_H
#define FP_BOOT_CHUNK_H

#include <stdbool.h>
#include <stddef.h>

#define CHUNK_VALUE_MAX ((size_t)1 << 30)

/* Encodes a value as text ("<length>.<base64>"), terminated, which the caller frees. NULL: no memory. */
char *chunk_encode(const void *val, size_t len, size_t *text_len);

/* Reads the length of the whole text from its first piece. Returns false if the piece does not start a
 * value. */
bool chunk_text_len(const char *first, size_t *text_len);

/* Decodes the result of chunk_encode. *val is allocated, with a zero byte behind *len bytes. False:
 * invalid text or no memory. */
bool chunk_decode(const char *text, size_t text_len, void **val, size_t *len);

#endif
