/* op_device.c: operators on data in GPU memory: by a kernel of the GPU if it has one, else by the
 * processor on copies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "dt/build.h"
#include "dt/device_pack.h"
#include "dt/kernel.h"
#include "dt/kind.h"
#include "dt/op.h"

/* Names of operators and representations in src/gpu/kernels.cu. */
static const char *const op_names[] = {
    [OP_SUM] = "sum",   [OP_PROD] = "prod", [OP_MIN] = "min",       [OP_MAX] = "max",
    [OP_BAND] = "band", [OP_BOR] = "bor",   [OP_BXOR] = "bxor",     [OP_LAND] = "land",
    [OP_LOR] = "lor",   [OP_LXOR] = "lxor", [OP_MINLOC] = "minloc", [OP_MAXLOC] = "maxloc",
};
static const char *const number_names[] = {
    [NUM_I8] = "I8",   [NUM_I16] = "I16", [NUM_I32] = "I32", [NUM_I64] = "I64", [NUM_I128] = "I128",
    [NUM_U8] = "U8",   [NUM_U16] = "U16", [NUM_U32] = "U32", [NUM_U64] = "U64", [NUM_F32] = "F32",
    [NUM_F64] = "F64", [NUM_C32] = "C32", [NUM_C64] = "C64",
};

static const char *number_type_name(const struct dtype *t)
{
    const enum dt_num num = dt_kinds[t->kind].num;
    return (size_t)num < COUNT_OF(number_names) ? number_names[num] : NULL;
}

/* Finds the kernel's name; false: there is no kernel for this operator and type. */
static bool op_find_kernel_name(const struct op *op, const struct dtype *t, char *name, size_t room)
{
    const char *first, *second = "";
    if (!op->handle || !t->obj.predefined || op->code >= COUNT_OF(op_names))
        return false;
    if (op->code < OP_ARITHMETIC_LIMIT) {
        first = number_type_name(t);
    } else {
        first = t->shape ? number_type_name(t->shape->part[0].type) : NULL;
        second = t->shape ? number_type_name(t->shape->part[1].type) : NULL;
    }
    if (!first || !second)
        return false;
    snprintf(name, room, "%s_%s%s%s", op_names[op->code], first, *second ? "_" : "", second);
    return true;
}

/* GPUs access device memory, managed memory and pinned host memory. */
static bool is_gpu_accessible(const void *address)
{
    struct gpu_range range;
    return gpu_find_range(address, &range) == 0;
}

static int apply_by_kernel(const struct op *op, const void *left, const void *right, void *out,
                           MPI_Count count, const struct dtype *t)
{
    char name[32];
    if (!op_find_kernel_name(op, t, name, sizeof(name)) || !is_gpu_accessible(left) ||
        !is_gpu_accessible(right) || !is_gpu_accessible(out))
        return ERR_AGAIN;
    return gpu_reduce(name, left, right, out, (size_t)count, t->align);
}

static int apply_to_copies(const struct op *op, const void *left, const void *right, void *out,
                           MPI_Count count, struct dtype *t)
{
    struct dt_host_copy first, second;
    const int failed = dt_host_copy_open(&first, left, count, t);
    int rc = dt_host_copy_make(&second, right, count, t); /* receives the result */
    rc = failed ? failed : rc;
    if (!rc) {
        op_apply(op, first.buffer, second.buffer, count, t);
        rc = dt_copy(second.buffer, count, t, out, count, t);
    }
    dt_host_copy_close(&first);
    dt_host_copy_close(&second);
    return rc;
}

bool op_has_kernel(const struct op *op, const struct dtype *t)
{
    char name[32];
    return op_find_kernel_name(op, t, name, sizeof(name));
}

int op_apply3_on_device(const struct op *op, const void *left, const void *right, void *out, MPI_Count count,
                        struct dtype *t)
{
    const int rc = apply_by_kernel(op, left, right, out, count, t);
    return rc == ERR_AGAIN ? apply_to_copies(op, left, right, out, count, t) : rc;
}

int op_apply_on_device(const struct op *op, const void *in, void *inout, MPI_Count count, struct dtype *t)
{
    return op_apply3_on_device(op, in, inout, inout, count, t);
}
