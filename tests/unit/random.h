/* random.h: a sequence of random numbers that depends on a seed only, so that a failure can be repeated.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_RANDOM_H
#define FP_TESTS_RANDOM_H

#include <stdint.h>

static uint32_t random_seed = 1;

static inline uint32_t random_below(uint32_t n)
{
    random_seed = random_seed * 1664525u + 1013904223u;
    return (random_seed >> 8) % n;
}

#endif
