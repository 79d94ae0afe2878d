/* build.c: creates, commits and frees datatypes. Size and bounds are computed from the shape when a type
 * is created. A commit builds the layout. The release of the last handle and of the last internal
 * reference frees the type.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/build.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "dt/kind.h"
#include "dt/layout.h"
#include "dt/recipe.h"

static int report_span_overflow(void)
{
    return err_set(MPI_ERR_ARG, "the datatype would span more than 2^63 bytes");
}

int dtype_report_no_memory(void)
{
    return err_set(MPI_ERR_NO_MEM, "out of memory for the description of a datatype");
}

struct dt_shape *dt_shape_new(MPI_Count repeat, MPI_Aint stride, MPI_Count count)
{
    size_t bytes;
    if (!checked_mul((size_t)count, sizeof(struct dt_part), &bytes) ||
        !checked_add(bytes, sizeof(struct dt_shape), &bytes))
        return NULL;
    struct dt_shape *s = calloc(1, bytes);
    if (s) {
        s->repeat = repeat;
        s->stride = stride;
        s->count = count;
    }
    return s;
}

/* A range of addresses, [low, high). */
struct range {
    MPI_Count low, high;
    bool any; /* false: the range is empty, and low and high are unused */
    bool bad; /* a bound did not fit in 64 bits */
};

static void range_add(struct range *r, MPI_Count low, MPI_Count high)
{
    r->low = r->any ? MIN(r->low, low) : low;
    r->high = r->any ? MAX(r->high, high) : high;
    r->any = true;
}

/* Extends a range by n - 1 copies of itself, each `step` behind the one before it. */
static void range_repeat(struct range *r, MPI_Count n, MPI_Count step)
{
    MPI_Count reach;
    if (!r->any || n == 0)
        return;
    r->bad |= !checked_mul(n - 1, step, &reach);
    if (!r->bad && reach < 0)
        r->bad |= !checked_add(r->low, reach, &r->low);
    else if (!r->bad)
        r->bad |= !checked_add(r->high, reach, &r->high);
}

/* Extends a range by the bounds [low, high) of one element of the part, at each of its copies. */
static void range_add_part(struct range *r, const struct dt_part *part, MPI_Count low, MPI_Count high)
{
    struct range one = {.any = true};
    one.bad = !checked_add(low, part->offset, &one.low);
    one.bad |= !checked_add(high, part->offset, &one.high);
    range_repeat(&one, part->count, part->type->extent);
    r->bad |= one.bad;
    if (!one.bad)
        range_add(r, one.low, one.high);
}

/* Sums, bounds and common properties of the entries of a type map. */
struct measure {
    struct range data;   /* from the lowest displacement to the highest end of an entry */
    struct range copies; /* from the lowest lb to the highest ub of a copy of an old type */
    struct range marks;  /* from the lowest lb_marker to the highest ub_marker (MPI 5.0, 5.1.7) */
    MPI_Count size, elements;
    uint16_t align; /* strictest alignment */
    uint8_t kind;   /* as in struct dtype */
    bool any;       /* an entry has data */
    bool bad;       /* size or elements did not fit in 64 bits */
};

static void measure_add_part(struct measure *m, const struct dt_part *part)
{
    const struct dtype *t = part->type;
    MPI_Count size, elements;
    if (part->count == 0 || (t->size == 0 && !t->marked))
        return;
    m->bad |= !checked_mul(t->size, part->count, &size) || !checked_add(m->size, size, &m->size);
    m->bad |= !checked_mul(t->elements, part->count, &elements) ||
              !checked_add(m->elements, elements, &m->elements);
    if (t->marked)
        range_add_part(&m->marks, part, t->lb, t->lb + t->extent);
    if (t->size > 0) {
        range_add_part(&m->data, part, t->true_lb, t->true_lb + t->true_extent);
        range_add_part(&m->copies, part, t->lb, t->lb + t->extent);
        m->kind = m->any && m->kind != t->kind ? KIND_MIXED : t->kind;
        m->any = true;
    }
    m->align = MAX(m->align, t->align);
}

static bool measure_shape(const struct dt_shape *s, struct measure *m)
{
    *m = (struct measure){.align = 1};
    for (MPI_Count i = 0; s->repeat > 0 && i < s->count; i++)
        measure_add_part(m, &s->part[i]);
    range_repeat(&m->data, s->repeat, s->stride);
    range_repeat(&m->copies, s->repeat, s->stride);
    range_repeat(&m->marks, s->repeat, s->stride);
    m->bad |= !checked_mul(m->size, s->repeat, &m->size);
    m->bad |= !checked_mul(m->elements, s->repeat, &m->elements);
    return !m->bad && !m->data.bad && !m->copies.bad && !m->marks.bad;
}

/* Bounds of a new type by MPI 5.0, 5.1, definition (5.1), and 5.1.7:
 *     lb     = the lowest lb of a copy of an old type              or, with markers, the lowest lb_marker
 *     ub     = the highest ub of a copy, plus epsilon              or, with markers, the highest ub_marker
 *
 * Epsilon makes ub - lb a multiple of the strictest alignment; it is added once, for the new type.
 * Definition (5.1) is given for the entries of a type map and does not state whether the epsilon of an old
 * type, which a constructor (5.1.2 to 5.1.4) copies one extent apart, belongs to the copy. Here it does: a
 * copy spans the whole extent of the old type, so that a program that adds up extents, (n - 1) * stride +
 * extent(old), gets at most extent(new). For example, hvector(2, 1, 9) of {(int, 0), (char, 4)}, whose
 * extent is 8, reaches from 0 to 17, and its extent is 17 + 3. Counting entries alone would give 14 + 2.
 * Other libraries: docs/conformance.md. */
static bool apply_measure(struct dtype *t, const struct measure *m)
{
    MPI_Count ub;
    t->size = m->size;
    t->elements = m->elements;
    t->align = m->align;
    t->kind = m->kind;
    t->marked = m->marks.any;
    if (m->data.any) {
        t->true_lb = m->data.low;
        if (!checked_sub(m->data.high, m->data.low, &t->true_extent))
            return false;
    }
    if (m->marks.any) {
        t->lb = m->marks.low;
        return checked_sub(m->marks.high, m->marks.low, &t->extent);
    }
    t->lb = m->copies.low;
    if (!checked_sub(m->copies.high, m->copies.low, &t->extent))
        return false;
    const MPI_Count slack = t->extent % t->align;
    return checked_add(t->extent, slack ? t->align - slack : 0, &t->extent) &&
           checked_add(t->lb, t->extent, &ub);
}

int dtype_new(struct dt_shape *shape, struct dtype **out)
{
    struct measure m;
    if (!shape)
        return dtype_report_no_memory();
    struct dtype *t = objmem_new(sizeof(*t));
    bool fits = measure_shape(shape, &m);
    if (!t || !fits || !apply_measure(t, &m)) {
        bool memory = t != NULL;
        objmem_free(t);
        free(shape);
        return memory ? report_span_overflow() : dtype_report_no_memory();
    }
    t->obj = object_init(MAGIC_DTYPE);
    t->handles = 1;
    t->shape = shape;
    for (MPI_Count i = 0; i < shape->count; i++)
        dtype_retain(shape->part[i].type);
    *out = t;
    return 0;
}

int dtype_strided(MPI_Count count, MPI_Count blocklength, MPI_Aint stride, struct dtype *old,
                  struct dtype **out)
{
    struct dt_shape *s = dt_shape_new(count, stride, 1);
    if (s)
        s->part[0] = (struct dt_part){blocklength, 0, old};
    return dtype_new(s, out);
}

void dtype_set_bounds(struct dtype *t, MPI_Aint lb, MPI_Aint extent)
{
    t->lb = lb;
    t->extent = extent;
    t->marked = true;
}

int dtype_commit(struct dtype *t)
{
    if (t->committed)
        return 0;
    const struct dt_layout *layout = dt_layout_of(t);
    if (!layout)
        return dtype_report_no_memory();
    t->dense = layout->node->type == NODE_BLOCK;
    t->contiguous = t->size == 0 || (t->dense && t->extent == t->size && t->true_lb == 0);
    t->committed = true;
    return 0;
}

void dtype_free(struct dtype *t)
{
    ASSERT(!t->attrs);
    for (MPI_Count i = 0; i < t->shape->count; i++)
        dtype_release(t->shape->part[i].type);
    free(t->shape);
    recipe_free(t->recipe);
    dt_layout_free(t->layout);
    t->obj.magic = MAGIC_FREED;
    objmem_free(t);
}
