/* kernels.cu: what GPUs compute: reductions of two operands, and gathering and scattering the blocks of derived datatypes. The
 * reductions are those of src/dt/kernel.def, so that host and GPU know the same operators and types.
 *
 * Compiled to kernels.ptx, which is part of the tree: `make ptx` does it where nvcc is installed, and a test compares the sum of this
 * file that kernels.ptx names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "kernels.h"

typedef __int128 num_i128;
typedef unsigned __int128 num_u128;
#define NUM_HAVE_F16  0
#define NUM_HAVE_F128 0

/* Each thread takes every (number of threads)th element. */
#define EACH(i, count)                                                                                                 \
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < (count); i += (uint64_t)gridDim.x * blockDim.x)

#define LOOP(op, num, type, expression)                                                                                \
    extern "C" __global__ void fp_##op##_##num(const type *x, const type *y, type *z, uint64_t count)                  \
    {                                                                                                                  \
        EACH(i, count)                                                                                                 \
        {                                                                                                              \
            const type a = x[i], b = y[i];                                                                             \
            z[i] = (type)(expression);                                                                                 \
        }                                                                                                              \
    }
#define LOGICAL(num, type)                                                                                             \
    LOOP(land, num, type, (a != 0) & (b != 0))                                                                         \
    LOOP(lor, num, type, (a != 0) | (b != 0))                                                                          \
    LOOP(lxor, num, type, (a != 0) ^ (b != 0))
#define INTEGER(num, type, wide)                                                                                       \
    LOOP(sum, num, type, (wide)a + (wide)b)                                                                            \
    LOOP(prod, num, type, (wide)a *(wide)b)                                                                            \
    LOOP(min, num, type, a < b ? a : b)                                                                                \
    LOOP(max, num, type, a > b ? a : b)                                                                                \
    LOOP(band, num, type, a &b)                                                                                        \
    LOOP(bor, num, type, a | b)                                                                                        \
    LOOP(bxor, num, type, a ^ b)                                                                                       \
    LOGICAL(num, type)
/* Products and sums are rounded one by one, as on the host: -fmad=false. */
#define FLOATING_ON_GPU(num, type)                                                                                     \
    LOOP(sum, num, type, a + b)                                                                                        \
    LOOP(prod, num, type, a *b)                                                                                        \
    LOOP(min, num, type, a < b ? a : b)                                                                                \
    LOOP(max, num, type, a > b ? a : b)                                                                                \
    LOGICAL(num, type)
#define COMPLEX_ON_GPU(num, type)                                                                                      \
    extern "C" __global__ void fp_sum_##num(const type *x, const type *y, type *z, uint64_t count)                     \
    {                                                                                                                  \
        EACH(i, 2 * count)                                                                                             \
        {                                                                                                              \
            z[i] = x[i] + y[i];                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    extern "C" __global__ void fp_prod_##num(const type *x, const type *y, type *z, uint64_t count)                    \
    {                                                                                                                  \
        EACH(i, count)                                                                                                 \
        {                                                                                                              \
            const type a = x[2 * i], ai = x[2 * i + 1], b = y[2 * i], bi = y[2 * i + 1];                               \
            z[2 * i] = a * b - ai * bi;                                                                                \
            z[2 * i + 1] = a * bi + ai * b;                                                                            \
        }                                                                                                              \
    }
/* GPUs have neither long double nor 128-bit floating point: these reductions are done by the host. */
#define ON_GPU_FL(what, type)
#define ON_GPU_CL(what, type)
#define ON_GPU_F32(what, type) what(F32, type)
#define ON_GPU_F64(what, type) what(F64, type)
#define ON_GPU_C32(what, type) what(C32, type)
#define ON_GPU_C64(what, type) what(C64, type)
#define FLOATING(num, type)    ON_GPU_##num(FLOATING_ON_GPU, type)
#define COMPLEX(num, type)     ON_GPU_##num(COMPLEX_ON_GPU, type)
#include "../dt/kernel.def"

/* MPI_MINLOC and MPI_MAXLOC: of equal values the smaller index wins. */
#define PAIR_LOOP(op, better, value, vtype, index, itype)                                                              \
    extern "C" __global__ void fp_##op##_##value##_##index(const void *left, const void *right, void *out, uint64_t count) \
    {                                                                                                                  \
        struct pair {                                                                                                  \
            vtype v;                                                                                                   \
            itype i;                                                                                                   \
        };                                                                                                             \
        const pair *x = (const pair *)left, *y = (const pair *)right;                                                  \
        pair *z = (pair *)out;                                                                                         \
        EACH(k, count)                                                                                                 \
        {                                                                                                              \
            const vtype av = x[k].v, bv = y[k].v;                                                                      \
            const itype ai = x[k].i, bi = y[k].i;                                                                      \
            const bool left_wins = av better bv || (av == bv && ai < bi);                                              \
            z[k].v = left_wins ? av : bv;                                                                              \
            z[k].i = left_wins ? ai : bi;                                                                              \
        }                                                                                                              \
    }
#define PAIR_BOTH(value, vtype, index, itype)                                                                          \
    PAIR_LOOP(minloc, <, value, vtype, index, itype)                                                                   \
    PAIR_LOOP(maxloc, >, value, vtype, index, itype)
PAIR_BOTH(F32, float, I32, int32_t)
PAIR_BOTH(F64, double, I32, int32_t)
PAIR_BOTH(I64, int64_t, I32, int32_t)
PAIR_BOTH(I32, int32_t, I32, int32_t)
PAIR_BOTH(I16, int16_t, I32, int32_t)
PAIR_BOTH(F32, float, F32, float)
PAIR_BOTH(F64, double, F64, double)

/* One block of threads moves segment after segment; 16, 4 or 1 bytes at a time, as the alignment of both sides allows. */
static __device__ void move(char *to, const char *from, uint64_t length)
{
    const uint64_t both = (uint64_t)to | (uint64_t)from | length;
    if (both % 16 == 0) {
        for (uint64_t i = threadIdx.x; i < length / 16; i += blockDim.x)
            ((uint4 *)to)[i] = ((const uint4 *)from)[i];
    } else if (both % 4 == 0) {
        for (uint64_t i = threadIdx.x; i < length / 4; i += blockDim.x)
            ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
    } else {
        for (uint64_t i = threadIdx.x; i < length; i += blockDim.x)
            to[i] = from[i];
    }
}

extern "C" __global__ void fp_gather(const char *base, char *dense, const struct gpu_segment *segments, uint64_t count)
{
    for (uint64_t i = blockIdx.x; i < count; i += gridDim.x)
        move(dense + segments[i].start, base + segments[i].offset, segments[i].length);
}

extern "C" __global__ void fp_scatter(char *base, const char *dense, const struct gpu_segment *segments, uint64_t count)
{
    for (uint64_t i = blockIdx.x; i < count; i += gridDim.x)
        move(base + segments[i].offset, dense + segments[i].start, segments[i].length);
}
