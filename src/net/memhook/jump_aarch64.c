/* jump_aarch64.c: B reaches 128 MiB; BR x17 reaches any address, and may land on a `bti c` like a call.
 * Encodings: Arm Architecture Reference Manual (A64 base instructions).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/util.h"
#include "net/memhook/jump.h"

#define NOP     0xd503201fu
#define BTI_C   0xd503245fu
#define PACIASP 0xd503233fu /* signs the return address; counts as a landing pad */
#define PACIBSP 0xd503237fu
#define LDR_X17 0x58000051u /* ldr x17, <8 bytes on> */
#define BR_X17  0xd61f0220u

static uint32_t jump_read_word(const uint8_t *code, size_t index)
{
    uint32_t w;
    memcpy(&w, code + 4 * index, 4);
    return w;
}

static bool is_bti(uint32_t w)
{
    return (w & 0xffffff3fu) == 0xd503241fu; /* bti, bti c, bti j, bti jc */
}

static uint32_t jump_encode_branch(uintptr_t from, uintptr_t to)
{
    return 0x14000000u | ((uint32_t)((to - from) >> 2) & 0x03ffffffu);
}

/* Makes the jump to an island. A pointer-signing instruction at the entry is replaced by a landing pad,
 * because the replacement returns to the caller itself. An existing landing pad is preserved. */
static struct jump make_jump_to_island(const uint8_t *code, uintptr_t entry, uintptr_t island)
{
    struct jump j = {.length = 4};
    uint32_t first = jump_read_word(code, 0), words[2] = {BTI_C, 0};
    if (first == PACIASP || first == PACIBSP) {
        words[1] = jump_encode_branch(entry + 4, island);
        j.length = 8;
    } else {
        j.skip = is_bti(first) ? 4 : 0;
        words[0] = jump_encode_branch(entry + j.skip, island);
    }
    memcpy(j.bytes, words, j.length);
    return j;
}

static void jump_write_island(uint8_t *out, uintptr_t target)
{
    uint32_t words[2] = {LDR_X17, BR_X17};
    uint64_t address = target;
    memcpy(out, words, 8);
    memcpy(out + 8, &address, 8);
}

/* Evaluates one instruction that builds an address in a register. False for other instructions. */
static bool jump_decode_constant(uint32_t w, uint64_t *value, uint32_t *reg)
{
    uint32_t shift = (w >> 21 & 3) * 16;
    uint64_t part = (uint64_t)(w >> 5 & 0xffff) << shift;
    if ((w & 0xff800000u) == 0xd2800000u) { /* movz */
        *value = part;
        *reg = w & 31;
        return true;
    }
    if ((w & 0xff800000u) == 0xf2800000u && (w & 31) == *reg) { /* movk */
        *value = (*value & ~((uint64_t)0xffff << shift)) | part;
        return true;
    }
    return false;
}

static uintptr_t jump_find_target(const uint8_t *code, uintptr_t entry)
{
    size_t at = jump_read_word(code, 0) == NOP || is_bti(jump_read_word(code, 0)) ? 1 : 0;
    uint32_t w = jump_read_word(code, at), reg = 32;
    uintptr_t here = entry + 4 * at;
    uint64_t value = 0;
    if ((w & 0xfc000000u) == 0x14000000u) /* b: signed offset of 26 bits */
        return here + (uintptr_t)((int64_t)((uint64_t)w << 38) >> 36);
    if ((w & 0xff000000u) == 0x58000000u) { /* ldr of a literal within JUMP_LOOK bytes */
        size_t offset = 4 * at + 4 * (w >> 5 & 0x7ffff);
        if (offset + 8 > JUMP_LOOK)
            return 0;
        memcpy(&value, code + offset, 8);
        reg = w & 31;
        at++;
    } else {
        while (at < JUMP_LOOK / 4 && jump_decode_constant(jump_read_word(code, at), &value, &reg))
            at++;
    }
    bool jumps =
        at < JUMP_LOOK / 4 && reg < 31 && jump_read_word(code, at) == (0xd61f0000u | reg << 5); /* br */
    return jumps ? (uintptr_t)value : 0;
}

const struct jump_code jump_aarch64 = {
    .processor = "aarch64",
    .reach = 120u << 20,
    .island_size = 16,
    .hold = {0x00, 0x00, 0x00, 0x14},
    .hold_length = 4,
    .to_island = make_jump_to_island,
    .island = jump_write_island,
    .follow = jump_find_target,
};
