/* patch.h: changes code that other threads may execute. Only for memhook.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MEMHOOK_PATCH_H
#define FP_NET_MEMHOOK_PATCH_H

#include "net/memhook/jump.h"

/* Maps a page for islands within reach of both addresses; NULL: none. It is writable until patch_seal. */
uint8_t *patch_page_near(uintptr_t low, uintptr_t high, uintptr_t reach, size_t size);
bool patch_seal(uint8_t *page, size_t size);

/* Replaces code that other threads may be executing. Returns false, with nothing changed, if the system does not
 * permit it. */
bool patch_write(const struct jump_code *code, uint8_t *at, const uint8_t *bytes, size_t length);

#endif
