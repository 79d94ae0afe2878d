/* iov.h: lists of memory pieces.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_IOV_H
#define SOFTIB_IOV_H

#include "base/base.h"
#include <sys/uio.h>

/* Fills `out` with the pieces of bytes [off, off + len) of a list; returns their number. */
static inline int iov_slice(const struct iovec *iov, int n, uint64_t off, uint64_t len, struct iovec *out)
{
    int k = 0;
    for (int i = 0; i < n && len; i++) {
        if (off >= iov[i].iov_len) {
            off -= iov[i].iov_len;
            continue;
        }
        uint64_t step = min_u64(iov[i].iov_len - off, len);
        out[k++] = (struct iovec){(char *)iov[i].iov_base + off, step};
        len -= step;
        off = 0;
    }
    return k;
}

#endif
