/* jump_x86_64.c: `jmp rel32` reaches 2 GiB; `jmp *0(%rip)` reaches any address. Encodings: Intel 64 manual,
 * volume 2.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "net/memhook/jump.h"

static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};

static size_t jump_landing_pad_length(const uint8_t *code)
{
    return memcmp(code, endbr64, 4) == 0 ? 4 : 0;
}

static struct jump make_jump_to_island(const uint8_t *code, uintptr_t entry, uintptr_t island)
{
    struct jump j = {.bytes = {0xe9}, .skip = jump_landing_pad_length(code), .length = 5};
    int32_t distance = (int32_t)(int64_t)(island - (entry + j.skip + 5));
    memcpy(j.bytes + 1, &distance, 4);
    return j;
}

static void jump_write_island(uint8_t *out, uintptr_t target)
{
    static const uint8_t jmp[6] = {0xff, 0x25};
    uint64_t address = target;
    memset(out, 0xcc, 16);
    memcpy(out, jmp, 6);
    memcpy(out + 6, &address, 8);
}

static int64_t jump_read_rel32(const uint8_t *at)
{
    int32_t distance;
    memcpy(&distance, at, 4);
    return distance;
}

/* Recognises jmp rel32; jmp *rel32(%rip); movabs $x, %reg and jmp *%reg, also for r8 to r15. */
static uintptr_t jump_find_target(const uint8_t *code, uintptr_t entry)
{
    size_t at = jump_landing_pad_length(code);
    const uint8_t *c = code + at;
    uint64_t value = 0;
    if (c[0] == 0xe9)
        return entry + at + 5 + (uintptr_t)jump_read_rel32(c + 1);
    if (c[0] == 0xff && c[1] == 0x25) {
        int64_t offset = (int64_t)at + 6 + jump_read_rel32(c + 2);
        if (offset < 0 || offset + 8 > JUMP_LOOK)
            return 0;
        memcpy(&value, code + offset, 8);
        return (uintptr_t)value;
    }
    if ((c[0] != 0x48 && c[0] != 0x49) || (c[1] & 0xf8) != 0xb8)
        return 0;
    memcpy(&value, c + 2, 8);
    const uint8_t *jmp = c + 10;
    if (c[0] == 0x49 && *jmp++ != 0x41)
        return 0;
    return jmp[0] == 0xff && jmp[1] == (0xe0 | (c[1] & 7)) ? (uintptr_t)value : 0;
}

const struct jump_code jump_x86_64 = {
    .processor = "x86_64",
    .reach = 1u << 30,
    .island_size = 16,
    .hold = {0xeb, 0xfe},
    .hold_length = 2,
    .to_island = make_jump_to_island,
    .island = jump_write_island,
    .follow = jump_find_target,
};
