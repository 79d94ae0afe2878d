/* area.h: memory of every kind that a program can pass to MPI, filled and compared through ordinary memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_GPU_AREA_H
#define FP_TESTS_GPU_AREA_H

#include <stdbool.h>
#include <stddef.h>

enum area_kind {
    AREA_HOST,
    AREA_DEVICE,
    AREA_POOL,
    AREA_MANAGED,
    AREA_PINNED,
    AREA_VMM,
    AREA_KINDS,
    AREA_VMM_PIECES = AREA_KINDS, /* several mappings, one behind the other */
    AREA_VMM_PRIVATE,             /* cannot be exported */
    AREA_NAMES
};
extern const char *const area_names[AREA_NAMES];

struct area {
    char *at;
    size_t size;
    enum area_kind kind;
};

/* Loads CUDA and starts it, once. False: there is none; prints why. */
bool area_start(void);
struct area area_new(enum area_kind kind, size_t size);
void area_free(struct area *a);
void area_write(const struct area *a, size_t at, const void *from, size_t size);
void area_read(const struct area *a, size_t at, void *to, size_t size);
/* Fills it with bytes that depend on `seed`; `area_pattern` gives the same bytes. */
void area_fill(const struct area *a, unsigned seed);
void area_pattern(char *out, size_t size, unsigned seed);

#endif
