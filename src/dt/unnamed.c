/* unnamed.c: predefined types without a name: Fortran kinds by precision and range, pairs of a value and
 * an index, and MPI_Type_match_size. Equal arguments return the same type, which exists until the process
 * ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <stdlib.h>

#include "dt/build.h"
#include "dt/kernel.h"
#include "dt/kind.h"
#include "dt/recipe.h"

struct cached_type {
    struct cached_type *next;
    struct dtype *type;
};
static struct cached_type *cached_types;

static bool recipes_are_equal(const struct dt_recipe *a, const struct dt_recipe *b)
{
    bool same = a->combiner == b->combiner && a->integers == b->integers && a->types == b->types;
    for (MPI_Count i = 0; same && i < a->integers; i++)
        same = a->integer[i] == b->integer[i];
    for (MPI_Count i = 0; same && i < a->types; i++)
        same = a->type[i] == b->type[i];
    return same;
}

/* The cached type with this recipe, or a new one of this shape. Takes ownership of both. */
static int find_or_cache_type(struct dt_recipe *r, struct dt_shape *shape, struct dtype **out)
{
    for (struct cached_type *k = cached_types; r && k; k = k->next) {
        if (recipes_are_equal(k->type->recipe, r)) {
            recipe_free(r);
            free(shape);
            *out = k->type;
            return 0;
        }
    }
    struct cached_type *k = malloc(sizeof(*k));
    struct dtype *t = NULL;
    int rc = !r || !k ? dtype_report_no_memory() : 0;
    if (rc)
        free(shape);
    else
        rc = dtype_new(shape, &t);
    if (!rc)
        rc = dtype_commit(t);
    if (rc) {
        if (t)
            dtype_release(t);
        recipe_free(r);
        free(k);
        return rc;
    }
    t->recipe = r;
    t->obj.predefined = true;
    *k = (struct cached_type){cached_types, t};
    cached_types = k;
    *out = t;
    return 0;
}

static int cache_alias(int combiner, int n, const int *numbers, enum dt_kind kind, struct dtype **out)
{
    struct dt_recipe *r = recipe_new(combiner, n, 0, 0, 0);
    for (int i = 0; r && i < n; i++)
        recipe_integer(r, numbers[i]);
    struct dt_shape *shape = dt_shape_new(1, 0, 1);
    if (shape)
        shape->part[0] = (struct dt_part){1, 0, dt_predefined(dt_kinds[kind].handle)};
    return find_or_cache_type(r, shape, out);
}

/* Kinds that SELECTED_REAL_KIND and SELECTED_INT_KIND of the Fortran compiler return, in increasing order. */
static const struct {
    int precision, range;
    enum dt_kind real, complex;
} reals[] = {
    {6, 37, KIND_REAL4, KIND_COMPLEX8},
    {15, 307, KIND_REAL8, KIND_COMPLEX16},
#if LDBL_MANT_DIG == 64
    {18, 4931, KIND_LONG_DOUBLE, KIND_C_LONG_DOUBLE_COMPLEX},
#endif
    {33, 4931, KIND_REAL16, KIND_COMPLEX32},
};

static const struct {
    int range;
    enum dt_kind kind;
} integers[] = {
    {2, KIND_INTEGER1}, {4, KIND_INTEGER2}, {9, KIND_INTEGER4}, {18, KIND_INTEGER8}, {38, KIND_INTEGER16}};

static int find_f90_floating(int combiner, int p, int r, struct dtype **out)
{
    const int numbers[2] = {p, r};
    if (p == MPI_UNDEFINED && r == MPI_UNDEFINED)
        return err_set(MPI_ERR_ARG, "p and r are both MPI_UNDEFINED");
    for (size_t i = 0; i < COUNT_OF(reals); i++) {
        if ((p == MPI_UNDEFINED || p <= reals[i].precision) && (r == MPI_UNDEFINED || r <= reals[i].range))
            return cache_alias(combiner, 2, numbers,
                               combiner == MPI_COMBINER_F90_REAL ? reals[i].real : reals[i].complex, out);
    }
    return err_set(MPI_ERR_ARG, "no Fortran kind has %d decimal digits and an exponent range of %d", p, r);
}

int dtype_f90_real(int p, int r, struct dtype **out)
{
    return find_f90_floating(MPI_COMBINER_F90_REAL, p, r, out);
}

int dtype_f90_complex(int p, int r, struct dtype **out)
{
    return find_f90_floating(MPI_COMBINER_F90_COMPLEX, p, r, out);
}

int dtype_f90_integer(int r, struct dtype **out)
{
    for (size_t i = 0; i < COUNT_OF(integers); i++) {
        if (r <= integers[i].range)
            return cache_alias(MPI_COMBINER_F90_INTEGER, 1, &r, integers[i].kind, out);
    }
    return err_set(MPI_ERR_ARG, "no Fortran integer kind has a range of %d decimal digits", r);
}

static const struct {
    uint8_t pair, value, index;
} pairs[] = {
#define BASIC(name, handle, ctype, num, class, external)
#define PAIR(name, handle, value, index) {KIND_##name, KIND_##value, KIND_##index},
#include "dt/predefined.def"
#undef BASIC
#undef PAIR
};

int dtype_value_index(struct dtype *value, struct dtype *index, struct dtype **out)
{
    const struct dt_kind_info *v = &dt_kinds[value->kind], *i = &dt_kinds[index->kind];
    *out = NULL;
    if (!value->handle || !index->handle)
        return 0;
    for (size_t k = 0; k < COUNT_OF(pairs); k++) {
        if (pairs[k].value == value->kind && pairs[k].index == index->kind) {
            *out = dt_predefined(dt_kinds[pairs[k].pair].handle);
            return 0;
        }
    }
    bool ordered = v->class == CLASS_C_INTEGER || v->class == CLASS_FORTRAN_INTEGER ||
                   v->class == CLASS_FLOATING || v->class == CLASS_MULTI;
    bool counts = i->class == CLASS_C_INTEGER || i->class == CLASS_FORTRAN_INTEGER || i->class == CLASS_MULTI;
    if (!ordered || !counts || !op_kernel_pair(OP_MINLOC, v->num, i->num))
        return 0;
    struct dt_recipe *r = recipe_new(MPI_COMBINER_VALUE_INDEX, 0, 0, 0, 2);
    struct dt_shape *shape = dt_shape_new(1, 0, 2);
    if (r) {
        recipe_type(r, value);
        recipe_type(r, index);
    }
    if (shape) {
        shape->part[0] = (struct dt_part){1, 0, value};
        shape->part[1] = (struct dt_part){1, ALIGN_UP(value->size, index->align), index};
    }
    return find_or_cache_type(r, shape, out);
}

/* Results of MPI_Type_match_size. Half precision is included: gfortran has no such kind, but other compilers
 * and languages have one. */
static const struct {
    int typeclass;
    enum dt_kind kind;
} sized[] = {
    {MPI_TYPECLASS_REAL, KIND_REAL2},        {MPI_TYPECLASS_REAL, KIND_REAL4},
    {MPI_TYPECLASS_REAL, KIND_REAL8},        {MPI_TYPECLASS_REAL, KIND_REAL16},
    {MPI_TYPECLASS_INTEGER, KIND_INTEGER1},  {MPI_TYPECLASS_INTEGER, KIND_INTEGER2},
    {MPI_TYPECLASS_INTEGER, KIND_INTEGER4},  {MPI_TYPECLASS_INTEGER, KIND_INTEGER8},
    {MPI_TYPECLASS_INTEGER, KIND_INTEGER16}, {MPI_TYPECLASS_COMPLEX, KIND_COMPLEX4},
    {MPI_TYPECLASS_COMPLEX, KIND_COMPLEX8},  {MPI_TYPECLASS_COMPLEX, KIND_COMPLEX16},
    {MPI_TYPECLASS_COMPLEX, KIND_COMPLEX32},
};

int dtype_match_size(int typeclass, int size, struct dtype **out)
{
    if (typeclass != MPI_TYPECLASS_REAL && typeclass != MPI_TYPECLASS_INTEGER &&
        typeclass != MPI_TYPECLASS_COMPLEX)
        return err_set(MPI_ERR_ARG, "%d is not a type class", typeclass);
    for (size_t i = 0; i < COUNT_OF(sized); i++) {
        struct dtype *t = dt_predefined(dt_kinds[sized[i].kind].handle);
        if (sized[i].typeclass == typeclass && t->size == size) {
            *out = t;
            return 0;
        }
    }
    return err_set(MPI_ERR_ARG, "no datatype of this class has %d bytes", size);
}
