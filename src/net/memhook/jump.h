/* jump.h: jump instructions of a processor, by which functions of libc are redirected. Pure functions on
 * bytes: the code for every processor is built and tested everywhere, and the code for the current processor
 * is chosen by name.
 *
 * A function of libc is redirected by one short jump at its beginning to an island, a few bytes of ours near
 * libc, with a long jump to the replacement. So even the shortest function has room for the patch, and for
 * most functions the patch is one atomic store.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MEMHOOK_JUMP_H
#define FP_NET_MEMHOOK_JUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JUMP_MAX = 16, JUMP_LOOK = 32 };

/* The bytes to write at entry + skip. A landing pad (BTI, endbr64) at the entry is preserved. */
struct jump {
    uint8_t bytes[JUMP_MAX];
    size_t skip, length;
};

struct jump_code {
    const char *processor;
    uintptr_t reach;    /* largest distance of an island from the function, in bytes */
    size_t island_size; /* a multiple of 16 */
    /* An instruction that jumps to itself: it holds threads while a jump is written by several stores. */
    uint8_t hold[4];
    size_t hold_length;

    /* Makes the jump from the function at `entry`, whose first JUMP_LOOK bytes are `code`, to the island. */
    struct jump (*to_island)(const uint8_t *code, uintptr_t entry, uintptr_t island);

    /* Writes an island of island_size bytes that jumps to `target`. */
    void (*island)(uint8_t *out, uintptr_t target);

    /* Returns the target if the function at `entry` begins with a jump, because another tool has redirected
     * it; 0 for ordinary code. */
    uintptr_t (*follow)(const uint8_t *code, uintptr_t entry);
};

extern const struct jump_code jump_aarch64, jump_x86_64;

/* The code for this processor; NULL if there is none. */
const struct jump_code *jump_find(const char *processor);

#endif
