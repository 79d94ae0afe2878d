/* count.c: counts of complete and partial elements. Whole repetitions are skipped by a division: the cost
 * depends on the nesting of the type, not on the amount of data.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/count.h"

#include "dt/build.h"

void dt_get_count(const struct dtype *t, MPI_Count bytes, MPI_Count *count)
{
    if (t->size == 0)
        *count = bytes == 0 ? 0 : MPI_UNDEFINED;
    else
        *count = bytes % t->size ? MPI_UNDEFINED : bytes / t->size;
}

/* Converts bytes of a sequence of t to basic elements (to_elements) or elements to bytes. -1: `in` ends
 * inside of an element, or the result exceeds 2^63. */
static MPI_Count convert_count(const struct dtype *t, MPI_Count in, bool to_elements);

static MPI_Count convert_count_within_shape(const struct dtype *t, MPI_Count in, bool to_elements)
{
    const struct dt_shape *s = t->shape;
    MPI_Count unit_in = (to_elements ? t->size : t->elements) / s->repeat;
    MPI_Count unit_out = (to_elements ? t->elements : t->size) / s->repeat;
    MPI_Count out = in / unit_in * unit_out;
    in %= unit_in;
    for (MPI_Count i = 0; in > 0; i++) {
        const struct dt_part *part = &s->part[i];
        const struct dtype *p = part->type;
        MPI_Count part_in = part->count * (to_elements ? p->size : p->elements);
        if (part_in == 0)
            continue;
        MPI_Count more = convert_count(p, MIN(in, part_in), to_elements);
        if (more < 0)
            return -1;
        out += more;
        in -= MIN(in, part_in);
    }
    return out;
}

static MPI_Count convert_count(const struct dtype *t, MPI_Count in, bool to_elements)
{
    MPI_Count unit_in = to_elements ? t->size : t->elements, unit_out = to_elements ? t->elements : t->size;
    MPI_Count whole, rest = in % unit_in;
    if (!checked_mul(in / unit_in, unit_out, &whole))
        return -1;
    if (rest == 0)
        return whole;
    if (!t->shape)
        return -1;
    MPI_Count more = convert_count_within_shape(t, rest, to_elements);
    return more < 0 || !checked_add(whole, more, &whole) ? -1 : whole;
}

void dt_get_elements(const struct dtype *t, MPI_Count bytes, MPI_Count *elements)
{
    if (t->size == 0) {
        *elements = bytes == 0 ? 0 : MPI_UNDEFINED;
        return;
    }
    MPI_Count n = convert_count(t, bytes, true);
    *elements = n < 0 ? MPI_UNDEFINED : n;
}

int dt_set_elements(const struct dtype *t, MPI_Count elements, MPI_Count *bytes)
{
    if (t->size == 0 && elements > 0)
        return err_set(MPI_ERR_ARG, "the datatype has no elements");
    *bytes = elements == 0 ? 0 : convert_count(t, elements, false);
    return *bytes >= 0 ? 0
                       : err_set(MPI_ERR_COUNT, "%lld elements of the datatype have more than 2^63 bytes",
                                 (long long)elements);
}
