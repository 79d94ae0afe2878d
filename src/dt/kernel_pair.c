/* kernel_pair.c: MPI_MINLOC and MPI_MAXLOC: of equal values the one with the smaller index is the result.
 * A kernel for every pair of value and index representation that MPI_Type_get_value_index can return.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dt/kernel.h"

/* Value and index are copied separately: a pair may have any address, and a temporary buffer may end with
 * the last index, before the padding of the structure. */
#define PAIR_LOOP(op, better, value, vtype, index, itype)                                            \
    static void op##_##value##_##index(const void *left, const void *right, void *out, size_t count) \
    {                                                                                                \
        struct pair {                                                                                \
            vtype v;                                                                                 \
            itype i;                                                                                 \
        } a, b;                                                                                      \
        const size_t half = offsetof(struct pair, i);                                                \
        const char *x = left, *y = right;                                                            \
        char *z = out;                                                                               \
        for (size_t k = 0; k < count; k++, x += sizeof(a), y += sizeof(a), z += sizeof(a)) {         \
            memcpy(&a.v, x, sizeof(a.v));                                                            \
            memcpy(&a.i, x + half, sizeof(a.i));                                                     \
            memcpy(&b.v, y, sizeof(b.v));                                                            \
            memcpy(&b.i, y + half, sizeof(b.i));                                                     \
            if (a.v better b.v || (a.v == b.v && a.i < b.i))                                         \
                b = a;                                                                               \
            memcpy(z, &b.v, sizeof(b.v));                                                            \
            memcpy(z + half, &b.i, sizeof(b.i));                                                     \
        }                                                                                            \
    }
#define PAIR_BOTH(value, vtype, index, itype)        \
    PAIR_LOOP(minloc, <, value, vtype, index, itype) \
    PAIR_LOOP(maxloc, >, value, vtype, index, itype)
#define VALUE(value, vtype)                \
    PAIR_BOTH(value, vtype, I16, int16_t)  \
    PAIR_BOTH(value, vtype, I32, int32_t)  \
    PAIR_BOTH(value, vtype, I64, int64_t)  \
    PAIR_BOTH(value, vtype, U32, uint32_t) \
    PAIR_BOTH(value, vtype, U64, uint64_t)
#include "dt/kernel_pair.def"
#undef VALUE
PAIR_BOTH(F32, float, F32, float)
PAIR_BOTH(F64, double, F64, double)

static op_kernel *const kernels[NUM_LIMIT][NUM_LIMIT][2] = {
#define ENTRY(value, index) [NUM_##value][NUM_##index] = {minloc_##value##_##index, maxloc_##value##_##index},
#define VALUE(value, vtype) \
    ENTRY(value, I16) ENTRY(value, I32) ENTRY(value, I64) ENTRY(value, U32) ENTRY(value, U64)
#include "dt/kernel_pair.def"
#undef VALUE
    ENTRY(F32, F32) ENTRY(F64, F64)};

op_kernel *op_kernel_pair(enum op_code code, enum dt_num value, enum dt_num index)
{
    return code == OP_MINLOC || code == OP_MAXLOC ? kernels[value][index][code - OP_MINLOC] : NULL;
}
