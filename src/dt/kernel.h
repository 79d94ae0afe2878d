/* kernel.h: the inner loops of reductions, by operator and representation.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_KERNEL_H
#define FP_DT_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "dt/kind.h"

/* Predefined operators; those before OP_ARITHMETIC_LIMIT in the order of the table in kernel.c. */
enum op_code {
    OP_SUM,
    OP_PROD,
    OP_MIN,
    OP_MAX,
    OP_BAND,
    OP_BOR,
    OP_BXOR,
    OP_LAND,
    OP_LOR,
    OP_LXOR,
    OP_ARITHMETIC_LIMIT,
    OP_MINLOC = OP_ARITHMETIC_LIMIT,
    OP_MAXLOC,
    OP_REPLACE,
    OP_NO_OP,
};

/* out[i] = left[i] op right[i]. out may be left or right, and none needs to be aligned. */
typedef void op_kernel(const void *left, const void *right, void *out, size_t count);

/* The loop for an operator and a representation; NULL: this build has no arithmetic for the
 * representation. */
op_kernel *op_kernel_for(enum op_code code, enum dt_num num);
/* The loop of MPI_MINLOC or MPI_MAXLOC for a structure of a value and an index. */
op_kernel *op_kernel_pair(enum op_code code, enum dt_num value, enum dt_num index);

#endif
