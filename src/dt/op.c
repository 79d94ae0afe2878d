/* op.c: predefined and user operators: the types for which they are defined, and their application.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/op.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dt/build.h"
#include "dt/kernel.h"
#include "dt/kind.h"
#include "dt/recipe.h"
#include "dt/walk.h"

#define BIT(class) (1u << CLASS_##class)
/* The standard excludes MPI_CHAR, a printable character, from reductions. Existing programs reduce it as
 * the integer that it is in C, so it is allowed here. */
#define INTEGERS   (BIT(C_INTEGER) | BIT(FORTRAN_INTEGER) | BIT(MULTI) | BIT(CHARACTER))
#define ARITHMETIC (INTEGERS | BIT(FLOATING))
/* The standard defines logical operators for C integers and logicals only. Floating-point numbers are
 * allowed, too, because existing programs use them. */
#define LOGICAL_OPS (INTEGERS | BIT(LOGICAL) | BIT(FLOATING))
#define BITWISE     (INTEGERS | BIT(BYTE))

static const struct {
    const char *name;
    unsigned classes; /* bits of enum dt_class; 0: only for accumulate operations on windows */
} rules[] = {
    [OP_SUM] = {"MPI_SUM", ARITHMETIC | BIT(COMPLEX)},
    [OP_PROD] = {"MPI_PROD", ARITHMETIC | BIT(COMPLEX)},
    [OP_MIN] = {"MPI_MIN", ARITHMETIC},
    [OP_MAX] = {"MPI_MAX", ARITHMETIC},
    [OP_BAND] = {"MPI_BAND", BITWISE},
    [OP_BOR] = {"MPI_BOR", BITWISE},
    [OP_BXOR] = {"MPI_BXOR", BITWISE},
    [OP_LAND] = {"MPI_LAND", LOGICAL_OPS},
    [OP_LOR] = {"MPI_LOR", LOGICAL_OPS},
    [OP_LXOR] = {"MPI_LXOR", LOGICAL_OPS},
    [OP_MINLOC] = {"MPI_MINLOC", BIT(PAIR)},
    [OP_MAXLOC] = {"MPI_MAXLOC", BIT(PAIR)},
    [OP_REPLACE] = {"MPI_REPLACE", 0},
    [OP_NO_OP] = {"MPI_NO_OP", 0},
};

#define PREDEFINED(value, code_)                                                   \
    [(value)-0x20] = {.obj = {.magic = MAGIC_OP, .refs = 1, .predefined = true},   \
                      .commutative = (code_) != OP_REPLACE && (code_) != OP_NO_OP, \
                      .code = code_,                                               \
                      .handle = value}
struct op op_by_handle[OP_HANDLES] = {
    PREDEFINED(0x21, OP_SUM),     PREDEFINED(0x22, OP_MIN),    PREDEFINED(0x23, OP_MAX),
    PREDEFINED(0x24, OP_PROD),    PREDEFINED(0x28, OP_BAND),   PREDEFINED(0x29, OP_BOR),
    PREDEFINED(0x2a, OP_BXOR),    PREDEFINED(0x30, OP_LAND),   PREDEFINED(0x31, OP_LOR),
    PREDEFINED(0x32, OP_LXOR),    PREDEFINED(0x38, OP_MINLOC), PREDEFINED(0x39, OP_MAXLOC),
    PREDEFINED(0x3c, OP_REPLACE), PREDEFINED(0x3d, OP_NO_OP),
};

const char *op_name(uint32_t handle)
{
    const struct op *op = op_predefined(handle);
    return op ? rules[op->code].name : "user-defined";
}

int op_new(MPI_User_function *function, MPI_User_function_c *large, bool commutative, struct op **out)
{
    struct op *op = objmem_new(sizeof(*op));
    if (!op)
        return err_set(MPI_ERR_NO_MEM, "out of memory for an operator");
    *op = (struct op){.obj = object_init(MAGIC_OP),
                      .commutative = commutative,
                      .large = large != NULL,
                      .function = function,
                      .function_large = large};
    *out = op;
    return 0;
}

void op_retain(struct op *op)
{
    if (!op->obj.predefined)
        op->obj.refs++;
}

void op_release(struct op *op)
{
    if (op->obj.predefined || --op->obj.refs > 0)
        return;
    op->obj.magic = MAGIC_FREED;
    objmem_free(op);
}

/* True for a structure of a value and its index: a named pair, or a type of MPI_Type_get_value_index. */
static bool is_pair(const struct dtype *t)
{
    return t->obj.predefined && t->shape && t->shape->count == 2;
}

/* The kernel for a predefined type, or NULL. */
static op_kernel *find_kernel(const struct op *op, const struct dtype *t)
{
    if (is_pair(t))
        return op_kernel_pair(op->code, dt_kinds[t->shape->part[0].type->kind].num,
                              dt_kinds[t->shape->part[1].type->kind].num);
    return op_kernel_for(op->code, dt_kinds[t->kind].num);
}

static const char *op_describe_type(const struct dtype *t)
{
    return t->name[0]          ? t->name
           : t->obj.predefined ? "a predefined type without a name"
                               : "a derived datatype";
}

static int op_error_undefined(const struct op *op, const struct dtype *t)
{
    return err_set(MPI_ERR_OP, "%s is not defined for %s", rules[op->code].name, op_describe_type(t));
}

int op_check(const struct op *op, const struct dtype *t)
{
    if (!op->handle)
        return 0;
    if (rules[op->code].classes == 0)
        return err_set(MPI_ERR_OP, "%s can only be used in accumulate operations on windows",
                       rules[op->code].name);
    unsigned class = is_pair(t) ? CLASS_PAIR : dt_kinds[t->kind].class;
    if (!t->obj.predefined || !(rules[op->code].classes & 1u << class))
        return op_error_undefined(op, t);
    if (!find_kernel(op, t))
        return err_set(MPI_ERR_OP, "this build has no arithmetic for %s, so %s cannot be applied to it",
                       op_describe_type(t), rules[op->code].name);
    return 0;
}

/* Stops at the first element whose predefined type does not match the first one's. */
static int visit_compare_type(void *context, struct dtype *basic, MPI_Count count, char *address)
{
    struct dtype **first = context;
    if (!*first)
        *first = basic;
    return *first == basic ? 0 : 1;
}

int op_check_accumulate(const struct op *op, const struct dtype *t, MPI_Count count)
{
    if (!op->handle)
        return err_set(MPI_ERR_OP, "accumulate operations take predefined operators only");
    if (op->code == OP_REPLACE || op->code == OP_NO_OP || t->size == 0 || count == 0)
        return 0;
    if (t->obj.predefined)
        return op_check(op, t);
    struct dtype *basic = t->kind == KIND_MIXED ? NULL : dt_predefined(dt_kinds[t->kind].handle);
    if (!basic && dt_walk((struct dtype *)t, 1, NULL, WALK_PREDEFINED, visit_compare_type, &basic))
        return err_set(MPI_ERR_TYPE, "the datatype holds values of several predefined types");
    return op_check(op, basic);
}

static void apply_user(const struct op *op, const void *in, void *inout, MPI_Count count, struct dtype *t)
{
    MPI_Datatype handle = dtype_handle(t);
    if (op->large) {
        op->function_large((void *)in, inout, &count, &handle);
        return;
    }
    while (count > 0) {
        int n = count < INT_MAX ? (int)count : INT_MAX;
        MPI_Aint step = n * t->extent;
        int length = n; /* the function may change its copy */
        op->function((void *)in, inout, &length, &handle);
        in = ptr_add(in, step);
        inout = ptr_add(inout, step);
        count -= n;
    }
}

/* Context of visit_apply_kernel. */
struct runs {
    const struct op *op;
    intptr_t shift; /* from an address in `inout` to the corresponding one in `in` */
};

static int visit_apply_kernel(void *context, struct dtype *basic, MPI_Count count, char *address)
{
    struct runs *r = context;
    op_kernel *kernel = find_kernel(r->op, basic);
    ASSERT(kernel);
    kernel(ptr_add(address, r->shift), address, address, (size_t)count);
    return 0;
}

void op_apply(const struct op *op, const void *in, void *inout, MPI_Count count, struct dtype *t)
{
    if (unlikely(!op->handle)) {
        if (count > 0)
            apply_user(op, in, inout, count, t);
        return;
    }
    if (op->code == OP_REPLACE) {
        dt_copy(in, count, t, inout, count, t);
        return;
    }
    if (op->code == OP_NO_OP)
        return;
    if (likely(t->obj.predefined)) {
        op_kernel *kernel = find_kernel(op, t);
        ASSERT(kernel);
        kernel(in, inout, inout, (size_t)count);
        return;
    }
    struct runs r = {op, (intptr_t)((uintptr_t)in - (uintptr_t)inout)};
    dt_walk(t, count, inout, WALK_PREDEFINED, visit_apply_kernel, &r);
}

bool op_apply3(const struct op *op, const void *left, const void *right, void *out, MPI_Count count,
               struct dtype *t)
{
    op_kernel *kernel = op->handle && t->contiguous && t->obj.predefined ? find_kernel(op, t) : NULL;
    if (kernel)
        kernel(left, right, out, (size_t)count);
    return kernel != NULL;
}
