/* model.h: a simple model of a datatype with which the library is compared: the type map of the standard,
 * a list of (offset, basic type) pairs. Also random numbers from a seed, so that a failure can be
 * repeated.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_DT_MODEL_H
#define FP_TESTS_DT_MODEL_H

#include <stdlib.h>
#include <string.h>

#include "dt/build.h"

struct model_entry {
    int64_t at;
    struct dtype *basic;
};

struct model {
    struct model_entry *entry;
    size_t count, room;
    bool marked; /* has explicit bounds: lb_mark is the lowest lower bound, ub_mark the highest upper bound */
    int64_t lb_mark, ub_mark;
    bool spans; /* has entries: `low` is the lowest lb, `high` the highest ub of its parts */
    int64_t low, high;
};

static inline void model_include_span(struct model *m, int64_t low, int64_t high)
{
    m->low = m->spans && m->low < low ? m->low : low;
    m->high = m->spans && m->high > high ? m->high : high;
    m->spans = true;
}

static inline void model_append(struct model *m, int64_t at, struct dtype *basic)
{
    if (m->count == m->room) {
        m->room = m->room ? 2 * m->room : 16;
        m->entry = realloc(m->entry, m->room * sizeof(*m->entry));
    }
    m->entry[m->count++] = (struct model_entry){at, basic};
}

static inline void model_add(struct model *m, int64_t at, struct dtype *basic)
{
    model_append(m, at, basic);
    model_include_span(m, at, at + basic->size);
}

static inline void model_include_bounds(struct model *m, int64_t lb, int64_t ub)
{
    m->lb_mark = m->marked && m->lb_mark < lb ? m->lb_mark : lb;
    m->ub_mark = m->marked && m->ub_mark > ub ? m->ub_mark : ub;
    m->marked = true;
}

static inline void model_true_bounds(const struct model *m, int64_t *low, int64_t *high)
{
    *low = *high = 0;
    for (size_t i = 0; i < m->count; i++) {
        int64_t a = m->entry[i].at, b = a + m->entry[i].basic->size;
        *low = i == 0 || a < *low ? a : *low;
        *high = i == 0 || b > *high ? b : *high;
    }
}

static inline int64_t model_lb(const struct model *m)
{
    return m->marked ? m->lb_mark : m->low;
}

static inline int64_t model_extent(const struct model *m)
{
    int64_t align = 1;
    if (m->marked)
        return m->ub_mark - m->lb_mark;
    for (size_t i = 0; i < m->count; i++)
        align = m->entry[i].basic->align > align ? m->entry[i].basic->align : align;
    return (m->high - m->low + align - 1) / align * align;
}

/* Appends a copy of `child` at displacement `by`; the copy spans from the child's lb to its ub, padding
 * included. */
static inline void model_add_copy(struct model *m, const struct model *child, int64_t by)
{
    for (size_t i = 0; i < child->count; i++)
        model_append(m, child->entry[i].at + by, child->entry[i].basic);
    if (child->count > 0)
        model_include_span(m, by + model_lb(child), by + model_lb(child) + model_extent(child));
    if (child->marked)
        model_include_bounds(m, child->lb_mark + by, child->ub_mark + by);
}

static inline int64_t model_size(const struct model *m)
{
    int64_t size = 0;
    for (size_t i = 0; i < m->count; i++)
        size += m->entry[i].basic->size;
    return size;
}

/* Copies the bytes of `count` elements to `out` in type-map order. */
static inline void model_pack(const struct model *m, int64_t count, const char *buffer, char *out)
{
    for (int64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < m->count; k++) {
            memcpy(out, buffer + i * model_extent(m) + m->entry[k].at, (size_t)m->entry[k].basic->size);
            out += m->entry[k].basic->size;
        }
    }
}

static inline void model_unpack(const struct model *m, int64_t count, char *buffer, const char *in,
                                size_t len)
{
    int64_t extent = model_extent(m);
    for (int64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < m->count && len > 0; k++) {
            size_t n = (size_t)m->entry[k].basic->size < len ? (size_t)m->entry[k].basic->size : len;
            memcpy(buffer + i * extent + m->entry[k].at, in, n);
            in += n;
            len -= n;
        }
    }
}

/* xorshift64* */
static uint64_t random_state = 1;

static inline uint64_t random_bits(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1du;
}

/* low..high, both included */
static inline int random_in_range(int low, int high)
{
    return low + (int)(random_bits() % (uint64_t)(high - low + 1));
}

static inline void random_fill(void *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)to)[i] = (unsigned char)(random_bits() >> 32);
}

#endif
