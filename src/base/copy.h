/* copy.h: memcpy for messages: short ones without a call, by overlapping loads and stores of a fixed size.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_COPY_H
#define FP_BASE_COPY_H

#include <string.h>

static inline void copy_bytes(void *to, const void *from, size_t len)
{
    char *t = to;
    const char *f = from;
    if (len > 32) {
        memcpy(t, f, len);
    } else if (len >= 16) {
        memcpy(t, f, 16);
        memcpy(t + len - 16, f + len - 16, 16);
    } else if (len >= 8) {
        memcpy(t, f, 8);
        memcpy(t + len - 8, f + len - 8, 8);
    } else if (len >= 4) {
        memcpy(t, f, 4);
        memcpy(t + len - 4, f + len - 4, 4);
    } else {
        for (size_t i = 0; i < len; i++)
            t[i] = f[i];
    }
}

#endif
