/* op.h: reduction operators, and their application to typed data.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_OP_H
#define FP_DT_OP_H

#include "dt/dtype.h"

struct op {
    struct object obj; /* MAGIC_OP; must be the first member */
    bool commutative;
    bool large;      /* user function takes MPI_Count */
    uint8_t code;    /* enum op_code of a predefined operator */
    uint32_t handle; /* predefined handle value, 0 for user operators */
    MPI_User_function *function;
    MPI_User_function_c *function_large;
};

/* Predefined operators by handle value - 0x20. An entry whose member `handle` is 0 is unused. */
#define OP_HANDLES 32
extern struct op op_by_handle[OP_HANDLES];

/* The predefined operator with this handle value, or NULL. */
static inline struct op *op_predefined(uint32_t handle)
{
    return handle - 0x20 < OP_HANDLES && op_by_handle[handle - 0x20].handle ? &op_by_handle[handle - 0x20]
                                                                            : NULL;
}

/* The name of a predefined operator, such as "MPI_SUM"; "user-defined" for any other handle value. */
const char *op_name(uint32_t handle);

static inline struct op *op_from_handle(MPI_Op handle)
{
    if (handle_is_predefined(handle))
        return op_predefined((uint32_t)(uintptr_t)handle);
    struct op *op = (struct op *)handle;
    return object_has_magic(op, MAGIC_OP) ? op : NULL;
}

static inline MPI_Op op_handle(const struct op *op)
{
    return op->handle ? (MPI_Op)(uintptr_t)op->handle : (MPI_Op)op;
}

/* Creates a user operator; one of the functions is NULL. */
int op_new(MPI_User_function *function, MPI_User_function_c *large, bool commutative, struct op **out);

void op_retain(struct op *op);
void op_release(struct op *op);

/* Returns 0, or MPI_ERR_OP if the operator is not defined for the type. */
int op_check(const struct op *op, const struct dtype *t);

/* op_check for accumulate operations on windows: MPI_REPLACE and MPI_NO_OP are allowed, and derived types
 * whose data is of one predefined type. */
int op_check_accumulate(const struct op *op, const struct dtype *t, MPI_Count count);

/* inout[i] = in[i] op inout[i]: `in` is the left operand, as in MPI_Reduce_local. */
void op_apply(const struct op *op, const void *in, void *inout, MPI_Count count, struct dtype *t);

/* out[i] = left[i] op right[i] for memory of which a part is in a GPU; `out` may be an operand. Returns 0
 * or an error class. */
int op_apply3_on_device(const struct op *op, const void *left, const void *right, void *out, MPI_Count count,
                        struct dtype *t);

/* True if a GPU kernel computes this operator of this type; else the processor computes it on copies. */
bool op_has_kernel(const struct op *op, const struct dtype *t);

/* op_apply for operands of which one is in GPU memory. Returns 0 or an error class. */
int op_apply_on_device(const struct op *op, const void *in, void *inout, MPI_Count count, struct dtype *t);

/* out[i] = left[i] op right[i] for predefined operators on contiguous types. Returns false if there is no
 * such kernel: the caller copies one operand to `out` and calls op_apply. */
bool op_apply3(const struct op *op, const void *left, const void *right, void *out, MPI_Count count,
               struct dtype *t);

#endif
