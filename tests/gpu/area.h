/* area.h: buffers in every kind of memory that a program can pass to MPI, written and read through
 * ordinary memory.
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
    AREA_VMM_PIECES = AREA_KINDS, /* several adjacent mappings */
    AREA_VMM_PRIVATE,             /* cannot be exported */
    AREA_NAMES
};
extern const char *const area_names[AREA_NAMES];

struct area {
    char *at;
    size_t size;
    enum area_kind kind;
};

/* Loads and initialises CUDA once. Returns false, and prints the reason, if CUDA is not available. */
bool area_load_cuda(void);
struct area area_alloc(enum area_kind kind, size_t size);
void area_free(struct area *a);
void area_write(const struct area *a, size_t at, const void *from, size_t size);
void area_read(const struct area *a, size_t at, void *to, size_t size);
/* Fills the area with bytes that depend on `seed`; `area_pattern` returns the same bytes. */
void area_fill(const struct area *a, unsigned seed);
void area_pattern(char *out, size_t size, unsigned seed);

#endif
