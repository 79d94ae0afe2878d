/* number.h: storage and arithmetic types of the less common predefined datatypes. A compiler may lack half
 * precision or a 128-bit float; the type then keeps its size and has no arithmetic. No other file tests
 * for these compilers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_NUMBER_H
#define FP_DT_NUMBER_H

#include <float.h>
#include <stdint.h>

typedef __int128 num_i128;
typedef unsigned __int128 num_u128;

/* Storage types, which exist for every compiler. */
typedef uint16_t num_store16;
typedef struct {
    uint16_t half[2];
} num_store16x2;
typedef struct {
    _Alignas(16) uint64_t half[2];
} num_store128;
typedef struct {
    num_store128 half[2];
} num_store128x2;

#ifdef __FLT16_MANT_DIG__
typedef _Float16 num_f16;
#define NUM_HAVE_F16 1
#else
#define NUM_HAVE_F16 0
#endif

#if LDBL_MANT_DIG == 113
typedef long double num_f128;
#define NUM_HAVE_F128 1
#elif defined(__SIZEOF_FLOAT128__)
typedef __float128 num_f128;
#define NUM_HAVE_F128 1
#else
#define NUM_HAVE_F128 0
#endif

#endif
