/* cg_matrix.h: the random sparse matrix of the conjugate gradient kernel, a block of it on each rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_KERNELS_CG_MATRIX_H
#define FP_LAB_KERNELS_CG_MATRIX_H

#include <stdint.h>

#include "kernels.h"

/* Parameters of the matrix, and the block of this rank: rows row0 to row1 - 1, columns col0 to col1 - 1. */
struct cg_shape {
    int n, nonzero;
    double shift;
    int row0, row1, col0, col1;
};

/* Compressed rows; column numbers are relative to col0. */
struct cg_matrix {
    int rows;
    int64_t *begin; /* rows + 1 entries */
    int *column;
    double *value;
};

void cg_matrix_make(struct kernel_run *run, const struct cg_shape *shape, struct cg_matrix *out);
void cg_matrix_free(struct cg_matrix *m);

#endif
