/* pattern.c: test data. Every byte depends on its position and a seed, so that late, short or shifted
 * messages are detected.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static unsigned char pattern_byte(size_t i, unsigned seed)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1b54a32d192ed03u;
    return (unsigned char)(x >> 56);
}

void bench_fill(void *buffer, size_t bytes, unsigned seed)
{
    unsigned char *p = buffer;
    for (size_t i = 0; i < bytes; i++)
        p[i] = pattern_byte(i, seed);
}

long bench_check(const void *buffer, size_t bytes, unsigned seed)
{
    const unsigned char *p = buffer;
    long wrong = 0;
    for (size_t i = 0; i < bytes; i++)
        wrong += p[i] != pattern_byte(i, seed);
    return wrong;
}

/* Allocates page-aligned memory and touches it, so that no page faults occur in the measurement. */
void *bench_alloc(size_t bytes)
{
    size_t size = (bytes + 4095) / 4096 * 4096;
    void *p = aligned_alloc(4096, size ? size : 4096);
    if (!p) {
        fprintf(stderr, "bench: out of memory for a buffer of %zu bytes; try smaller --sizes.\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(p, 0, size ? size : 4096);
    return p;
}
