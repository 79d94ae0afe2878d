/* pattern.h: messages filled with a pattern that depends on a seed and the position, contiguous or with gaps.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_MPI_P2P_PATTERN_H
#define FP_MPI_P2P_PATTERN_H

#include "mpitest.h"

/* A message of `size` bytes in memory: contiguous bytes, or (holey) ints that are each followed by a gap
 * of the same size. */
struct layout {
    MPI_Datatype type;
    int count;
    size_t size, span;
    int holey;
};

static inline struct layout make_layout(size_t size, int holey)
{
    struct layout l = {.size = size, .holey = holey};
    if (!holey) {
        l.type = MPI_BYTE;
        l.count = (int)size;
        l.span = size;
    } else {
        MPI_Datatype one;
        MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &one);
        MPI_Type_contiguous(1, one, &l.type);
        MPI_Type_commit(&l.type);
        MPI_Type_free(&one);
        l.count = (int)(size / sizeof(int));
        l.span = (size_t)l.count * 2 * sizeof(int);
    }
    return l;
}

static inline void layout_free(struct layout *l)
{
    if (l->holey)
        MPI_Type_free(&l->type);
}

/* The offset of byte i of the message in the buffer. */
static inline size_t layout_get_offset(const struct layout *l, size_t i)
{
    return l->holey ? i / 4 * 8 + i % 4 : i;
}

static inline unsigned char pattern_byte(unsigned seed, size_t i)
{
    return (unsigned char)(seed * 31 + i + (i >> 8) * 7);
}

static inline void pattern_fill(void *buf, const struct layout *l, unsigned seed)
{
    memset(buf, 0xee, l->span);
    for (size_t i = 0; i < l->size; i++)
        ((unsigned char *)buf)[layout_get_offset(l, i)] = pattern_byte(seed, i);
}

/* Returns the number of wrong bytes; bytes of gaps must still be 0xdd. */
static inline size_t pattern_count_wrong(const void *buf, const struct layout *l, unsigned seed)
{
    const unsigned char *b = buf;
    size_t wrong = 0;
    for (size_t i = 0; i < l->size; i++)
        wrong += b[layout_get_offset(l, i)] != pattern_byte(seed, i);
    for (size_t i = 0; l->holey && i < l->span; i++)
        wrong += i % 8 >= 4 && b[i] != 0xdd;
    return wrong;
}

#endif
