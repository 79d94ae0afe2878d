/* checked.h: arithmetic on numbers of the user or of the network (counts, displacements, offsets, strides).
 * Each operation returns true if the exact result fits in *out. *out is changed even if the result does not
 * fit. The integer types may differ.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_CHECKED_H
#define FP_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

#define checked_add(a, b, out) (!__builtin_add_overflow(a, b, out))
#define checked_sub(a, b, out) (!__builtin_sub_overflow(a, b, out))
#define checked_mul(a, b, out) (!__builtin_mul_overflow(a, b, out))

/* Computes *out = a * b + c; false on overflow. */
static inline bool checked_mul_add(int64_t a, int64_t b, int64_t c, int64_t *out)
{
    int64_t product;
    return checked_mul(a, b, &product) && checked_add(product, c, out);
}

#endif
