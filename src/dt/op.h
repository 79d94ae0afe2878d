/* op.h: reduction operators as collectives see them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_OP_H
#define FP_DT_OP_H

#include "dt/dtype.h"

struct op {
    struct object obj; /* MAGIC_OP; first */
    bool commutative;
    bool large;      /* user function takes MPI_Count */
    uint8_t code;    /* enum op_code of a predefined operator */
    uint32_t handle; /* predefined handle value, 0 for user operators */
    MPI_User_function *function;
    MPI_User_function_c *function_large;
};

/* Predefined operators by handle value - 0x20; those without a handle are no operators. */
#define OP_HANDLES 32
extern struct op op_by_handle[OP_HANDLES];

/* The predefined operator with this handle value, or NULL. */
static inline struct op *op_predefined(uint32_t handle)
{
    return handle - 0x20 < OP_HANDLES && op_by_handle[handle - 0x20].handle ? &op_by_handle[handle - 0x20]
                                                                            : NULL;
}

/* "MPI_SUM" of a handle value; "user-defined" of any that no predefined operator has. */
const char *op_name(uint32_t handle);

static inline struct op *op_from(MPI_Op handle)
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

/* A new user operator; exactly one of the functions is given. */
int op_new(MPI_User_function *function, MPI_User_function_c *large, bool commutative, struct op **out);

void op_retain(struct op *op);
void op_release(struct op *op);

/* 0, or MPI_ERR_OP with a sentence when the standard does not define this operator for this type. */
int op_check(const struct op *op, const struct dtype *t);

/* The same for accumulating into windows, where MPI_REPLACE and MPI_NO_OP are operators too and a derived
 * type will do when all its data is of one predefined type. */
int op_check_accumulate(const struct op *op, const struct dtype *t, MPI_Count count);

/* inout[i] = in[i] op inout[i], in typed layout (the MPI_Reduce_local order: `in` is the left operand). */
void op_apply(const struct op *op, const void *in, void *inout, MPI_Count count, struct dtype *t);

/* out[i] = left[i] op right[i] if an operand or `out` is in GPU memory; `out` may be an operand. 0, or an error class. */
int op_apply3_on_device(const struct op *op, const void *left, const void *right, void *out, MPI_Count count,
                        struct dtype *t);

/* True if GPUs compute this operator of this type; else processors do it on copies. */
bool op_has_kernel(const struct op *op, const struct dtype *t);

/* op_apply if an operand is in GPU memory. 0, or an error class. */
int op_apply_on_device(const struct op *op, const void *in, void *inout, MPI_Count count, struct dtype *t);

/* out[i] = left[i] op right[i] for predefined operators on contiguous types, saving a copy; returns false
 * when it has no such kernel and the caller must copy and op_apply. */
bool op_apply3(const struct op *op, const void *left, const void *right, void *out, MPI_Count count,
               struct dtype *t);

#endif
