/* jump.h: jump instructions of a processor that lead to a replacement. Pure functions on bytes: each processor's are built
 * and tested everywhere, and the one this library runs on is chosen by name.
 *
 * A function of libc is redirected by one short jump at its beginning to an island, a few bytes of ours near
 * libc, from where a long jump leads to the replacement. So even the shortest function has room, and on most
 * of them the change is one store that other threads see whole.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MEMHOOK_JUMP_H
#define FP_NET_MEMHOOK_JUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JUMP_MAX = 16, JUMP_LOOK = 32 };

/* Bytes to write at entry + skip. A landing pad (BTI, endbr64) at the entry stays valid. */
struct jump {
    uint8_t bytes[JUMP_MAX];
    size_t skip, length;
};

struct jump_code {
    const char *processor;
    uintptr_t reach;    /* largest distance of an island from the function, in bytes */
    size_t island_size; /* a multiple of 16 */
    /* An instruction that jumps to itself: holds threads while a jump is written that needs several stores. */
    uint8_t hold[4];
    size_t hold_length;

    /* The jump from the function at `entry`, whose first JUMP_LOOK bytes are `code`, to the island. */
    struct jump (*to_island)(const uint8_t *code, uintptr_t entry, uintptr_t island);

    /* Writes an island that leads to `target`: island_size bytes. */
    void (*island)(uint8_t *out, uintptr_t target);

    /* Where the function at `entry` jumps to at once, as it does when another tool has redirected it; 0 when
     * it is ordinary code. */
    uintptr_t (*follow)(const uint8_t *code, uintptr_t entry);
};

extern const struct jump_code jump_aarch64, jump_x86_64;

/* The code for this processor; NULL if there is none. */
const struct jump_code *jump_find(const char *processor);

#endif
