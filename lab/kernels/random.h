/* random.h: the random numbers of the specification: x(k+1) = 5^13 x(k) mod 2^46, read as fractions of 2^46
 * [NPB94]. Arithmetic modulo 2^64 is exact modulo 2^46, so unsigned multiplication suffices.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_KERNELS_RANDOM_H
#define FP_LAB_KERNELS_RANDOM_H

#include <stdint.h>

#define RANDOM_FACTOR 1220703125u
#define RANDOM_MASK   ((UINT64_C(1) << 46) - 1)

static inline double random_next(uint64_t *x)
{
    *x = *x * RANDOM_FACTOR & RANDOM_MASK;
    return (double)*x * 0x1p-46;
}

/* Returns the state after n further random numbers. */
static inline uint64_t random_skip(uint64_t x, uint64_t n)
{
    for (uint64_t factor = RANDOM_FACTOR; n; n >>= 1) {
        if (n & 1)
            x = x * factor & RANDOM_MASK;
        factor = factor * factor & RANDOM_MASK;
    }
    return x;
}

#endif
