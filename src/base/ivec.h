/* ivec.h: an input array of counts or displacements: int[] in one binding, 64-bit integers in its `_c`
 * form. The implementation of both bindings reads the array through this structure, without a conversion.
 * Only operations that outlive the user's arrays (nonblocking and persistent collectives) copy them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_IVEC_H
#define FP_BASE_IVEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ivec {
    const void *p;
    bool wide; /* elements are int64_t, otherwise int */
};

static inline struct ivec ivec_from_int(const int *p)
{
    return (struct ivec){p, false};
}

static inline struct ivec ivec_from_int64(const void *p)
{
    return (struct ivec){p, true};
}

static inline int64_t ivec_get(struct ivec v, size_t i)
{
    return v.wide ? ((const int64_t *)v.p)[i] : ((const int *)v.p)[i];
}

#endif
