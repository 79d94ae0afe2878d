/* single_step_arch.h: for x86_64, see base/single_step.h. Decodes prefixes and opcode, from which the size
 * of a store follows. An unknown instruction stores one byte at least.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SINGLE_STEP_ARCH_H
#define FP_BASE_SINGLE_STEP_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#define STEP_POSSIBLE 1

enum { STEP_TRAP_FLAG = 0x100, STEP_DIRECTION_FLAG = 0x400, STEP_FAULT_WRITES = 2 };

static inline bool step_is_store(const ucontext_t *u)
{
    return u->uc_mcontext.gregs[REG_ERR] & STEP_FAULT_WRITES;
}

static inline uintptr_t step_instruction_address(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
}

static inline void step_begin(ucontext_t *u)
{
    u->uc_mcontext.gregs[REG_EFL] |= STEP_TRAP_FLAG;
}

static inline void step_end(ucontext_t *u)
{
    u->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)STEP_TRAP_FLAG;
}

struct step_prefixes {
    bool narrow; /* operand-size prefix 66 */
    bool f2, f3;
    bool wide; /* REX.W */
};

static inline const unsigned char *step_prefixes_read(const unsigned char *c, struct step_prefixes *p)
{
    *p = (struct step_prefixes){0};
    for (;; c++) {
        if (*c == 0x66)
            p->narrow = true;
        else if (*c == 0xf2)
            p->f2 = true;
        else if (*c == 0xf3)
            p->f3 = true;
        else if (*c != 0x26 && *c != 0x2e && *c != 0x36 && *c != 0x3e && *c != 0x64 && *c != 0x65 &&
                 *c != 0x67 && *c != 0xf0)
            break;
    }
    if ((*c & 0xf0) == 0x40)
        p->wide = *c++ & 8;
    return c;
}

/* Returns the number of bytes that a vector store with the two-byte opcode 0f XX writes. vector: bytes of the
 * register. scalar: bytes that opcode 0f 11 writes with prefix f3 or f2; 0 without these prefixes. */
static inline size_t step_vector_size(unsigned opcode, size_t vector, size_t scalar, bool wide)
{
    switch (opcode) {
    case 0x11: /* movups, movupd, movss, movsd */
        return scalar ? scalar : vector;
    case 0x29: /* movaps, movapd */
    case 0x2b: /* movntps, movntpd */
    case 0x7f: /* movdqa, movdqu */
    case 0xe7: /* movntdq */
        return vector;
    case 0x13: /* movlps, movlpd */
    case 0x17: /* movhps, movhpd */
    case 0xd6: /* movq */
        return 8;
    case 0x7e: /* movd, movq */
        return wide ? 8 : 4;
    default:
        return 1;
    }
}

static inline size_t step_scalar_size(unsigned pp)
{
    return pp == 2 ? 4 : pp == 3 ? 8 : 0;
}

/* Returns the number of bytes that an AVX instruction stores. Its VEX prefix (c5, c4) or EVEX prefix (62)
 * replaces opcode byte 0f and the older prefixes. */
static inline size_t step_avx_size(const unsigned char *c)
{
    if (c[0] == 0xc5)
        return step_vector_size(c[2], c[1] & 4 ? 32 : 16, step_scalar_size(c[1] & 3), false);
    if (c[0] == 0xc4)
        return (c[1] & 31) == 1
                   ? step_vector_size(c[3], c[2] & 4 ? 32 : 16, step_scalar_size(c[2] & 3), c[2] & 0x80)
                   : 1;
    if ((c[1] & 7) != 1 || (c[3] & 7) != 0)
        return 1;
    return step_vector_size(c[4], (size_t)16 << (c[3] >> 5 & 3), step_scalar_size(c[2] & 3), c[2] & 0x80);
}

static inline size_t step_two_byte_opcode_size(const unsigned char *c, const struct step_prefixes *p,
                                               size_t operand)
{
    switch (*c) {
    case 0xa4: /* shld, shrd */
    case 0xa5:
    case 0xac:
    case 0xad:
    case 0xab: /* bts, btr, btc */
    case 0xb3:
    case 0xbb:
    case 0xba:
    case 0xb1: /* cmpxchg */
    case 0xc1: /* xadd */
        return operand;
    case 0xc3: /* movnti */
        return p->wide ? 8 : 4;
    case 0x7f: /* movq or movntq of an MMX register; a 16-byte store with prefix 66 or f3 */
    case 0xe7:
        return p->narrow || p->f3 ? 16 : 8;
    default:
        return step_vector_size(*c, 16, p->f3 ? 4 : p->f2 ? 8 : 0, p->wide);
    }
}

static inline size_t step_store_size(const unsigned char *code)
{
    struct step_prefixes p;
    if (*code == 0xc5 || *code == 0xc4 || *code == 0x62)
        return step_avx_size(code);
    const unsigned char *c = step_prefixes_read(code, &p);
    const size_t operand = p.wide ? 8 : p.narrow ? 2 : 4;
    switch (*c) {
    case 0x0f:
        return step_two_byte_opcode_size(c + 1, &p, operand);
    case 0x01: /* add, or, adc, sbb, and, sub, xor of a register */
    case 0x09:
    case 0x11:
    case 0x19:
    case 0x21:
    case 0x29:
    case 0x31:
    case 0x81: /* add, or, adc, sbb, and, sub, xor of a constant */
    case 0x83:
    case 0x87: /* xchg */
    case 0x89: /* mov */
    case 0xa3:
    case 0xc7:
    case 0xc1: /* shifts */
    case 0xd1:
    case 0xd3:
    case 0xf7: /* not, neg */
        return operand;
    case 0xff: /* inc, dec: the operand; call and push: 8 bytes */
        return (c[1] >> 3 & 7) < 2 ? operand : 8;
    default:
        return 1;
    }
}

/* Returns the element size in bytes of rep movs or rep stos with ascending addresses, 0 for any other
 * instruction. *length: bytes of the instruction. */
static inline size_t step_block_unit(const ucontext_t *u, bool *copies, size_t *length)
{
    const unsigned char *code = (const unsigned char *)step_instruction_address(u);
    struct step_prefixes p;
    const unsigned char *c = step_prefixes_read(code, &p);
    *copies = *c == 0xa4 || *c == 0xa5;
    *length = (size_t)(c - code) + 1;
    if (!p.f3 || (!*copies && *c != 0xaa && *c != 0xab) ||
        u->uc_mcontext.gregs[REG_EFL] & STEP_DIRECTION_FLAG)
        return 0;
    return *c & 1 ? (p.wide ? 8 : p.narrow ? 2 : 4) : 1;
}

static inline bool step_get_block_store(const ucontext_t *u, uintptr_t *to, size_t *bytes)
{
    bool copies;
    size_t length;
    const size_t unit = step_block_unit(u, &copies, &length);
    *to = (uintptr_t)u->uc_mcontext.gregs[REG_RDI];
    *bytes = (size_t)u->uc_mcontext.gregs[REG_RCX] * unit;
    return unit != 0;
}

/* Executes at most `bytes` bytes of rep movs or rep stos, element by element as the processor does: source
 * and target may overlap. */
static inline size_t step_execute_block_store(ucontext_t *u, size_t bytes)
{
    greg_t *r = u->uc_mcontext.gregs;
    bool copies;
    size_t length;
    const size_t unit = step_block_unit(u, &copies, &length);
    size_t done = 0;
    for (; done + unit <= bytes; done += unit) {
        memcpy((void *)r[REG_RDI], copies ? (const void *)r[REG_RSI] : (const void *)&r[REG_RAX], unit);
        r[REG_RDI] += (greg_t)unit;
        r[REG_RSI] += copies ? (greg_t)unit : 0;
        r[REG_RCX]--;
    }
    if (r[REG_RCX] == 0)
        r[REG_RIP] += (greg_t)length;
    return done;
}

#endif
