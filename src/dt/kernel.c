/* kernel.c: reduction loops, one for each operator and representation of kernel.def. The compiler
 * vectorises these plain loops. Element types are declared unaligned, which costs nothing on x86-64 and
 * AArch64.
 *
 * Iterations are independent even when out is one of the operands, which INDEPENDENT declares to the
 * vectoriser. Signed integers are added as unsigned ones: an overflow wraps.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/kernel.h"

#include "dt/number.h"

#ifdef __clang__
/* clang warns about loops without a vector form, such as those over 128-bit integers. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* On x86-64 the loops are compiled a second time for processors with 32-byte vectors, chosen when the library
 * is loaded. */
#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif

#define LOOP(op, num, type, expression)                                                         \
    CLONES static void op##_##num(const void *left, const void *right, void *out, size_t count) \
    {                                                                                           \
        typedef type element __attribute__((aligned(1), may_alias));                            \
        const element *x = left, *y = right;                                                    \
        element *z = out;                                                                       \
        INDEPENDENT for (size_t i = 0; i < count; i++)                                          \
        {                                                                                       \
            const type a = x[i], b = y[i];                                                      \
            z[i] = (type)(expression);                                                          \
        }                                                                                       \
    }

#define INTEGER(num, type, wide)               \
    LOOP(sum, num, type, (wide)a + (wide)b)    \
    LOOP(prod, num, type, (wide)a *(wide)b)    \
    LOOP(min, num, type, a < b ? a : b)        \
    LOOP(max, num, type, a > b ? a : b)        \
    LOOP(band, num, type, a &b)                \
    LOOP(bor, num, type, a | b)                \
    LOOP(bxor, num, type, a ^ b)               \
    LOOP(land, num, type, (a != 0) & (b != 0)) \
    LOOP(lor, num, type, (a != 0) | (b != 0))  \
    LOOP(lxor, num, type, (a != 0) ^ (b != 0))
#define FLOATING(num, type)                    \
    LOOP(sum, num, type, a + b)                \
    LOOP(prod, num, type, a *b)                \
    LOOP(min, num, type, a < b ? a : b)        \
    LOOP(max, num, type, a > b ? a : b)        \
    LOOP(land, num, type, (a != 0) & (b != 0)) \
    LOOP(lor, num, type, (a != 0) | (b != 0))  \
    LOOP(lxor, num, type, (a != 0) ^ (b != 0))
/* A complex number is stored as two numbers of `type`, real part first. */
#define COMPLEX(num, type)                                                                      \
    CLONES static void prod_##num(const void *left, const void *right, void *out, size_t count) \
    {                                                                                           \
        typedef type element __attribute__((aligned(1), may_alias));                            \
        const element *x = left, *y = right;                                                    \
        element *z = out;                                                                       \
        INDEPENDENT for (size_t i = 0; i < 2 * count; i += 2)                                   \
        {                                                                                       \
            const type a = x[i], ai = x[i + 1], b = y[i], bi = y[i + 1];                        \
            z[i] = a * b - ai * bi;                                                             \
            z[i + 1] = a * bi + ai * b;                                                         \
        }                                                                                       \
    }                                                                                           \
    CLONES static void sum_##num(const void *left, const void *right, void *out, size_t count)  \
    {                                                                                           \
        typedef type element __attribute__((aligned(1), may_alias));                            \
        const element *x = left, *y = right;                                                    \
        element *z = out;                                                                       \
        INDEPENDENT for (size_t i = 0; i < 2 * count; i++) z[i] = x[i] + y[i];                  \
    }
#include "dt/kernel.def"
#undef INTEGER
#undef FLOATING
#undef COMPLEX

static op_kernel *const kernels[NUM_LIMIT][OP_ARITHMETIC_LIMIT] = {
#define INTEGER(num, type, wide)                                             \
    [NUM_##num] = {sum_##num, prod_##num, min_##num,  max_##num, band_##num, \
                   bor_##num, bxor_##num, land_##num, lor_##num, lxor_##num},
#define FLOATING(num, type)                                            \
    [NUM_##num] = {sum_##num, prod_##num, min_##num,  max_##num, NULL, \
                   NULL,      NULL,       land_##num, lor_##num, lxor_##num},
#define COMPLEX(num, type) [NUM_##num] = {sum_##num, prod_##num},
#include "dt/kernel.def"
#undef INTEGER
#undef FLOATING
#undef COMPLEX
};

op_kernel *op_kernel_for(enum op_code code, enum dt_num num)
{
    return code < OP_ARITHMETIC_LIMIT ? kernels[num][code] : NULL;
}
