/* area.c: allocates each kind of memory, and copies from and to it (area.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "area.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

const char *const area_names[AREA_NAMES] = {"host",   "device", "pool",       "managed",
                                            "pinned", "VMM",    "VMM pieces", "private VMM"};

bool area_load_cuda(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) {
        printf("cannot load libcuda.so.1: %s\n", dlerror());
        return false;
    }
    program_load();
    if (cu.init(0) != CUDA_OK) {
        printf("no GPU\n");
        return false;
    }
    program_start();
    return true;
}

static void area_require_success(cuda_result result, const char *what, enum area_kind kind)
{
    if (result == CUDA_OK)
        return;
    printf("%s of %s memory returned error %d\n", what, area_names[kind], result);
    exit(1);
}

static size_t round_up_to_units(size_t size)
{
    return (size + PROGRAM_UNIT - 1) / PROGRAM_UNIT * PROGRAM_UNIT;
}

struct area area_alloc(enum area_kind kind, size_t size)
{
    struct area a = {.size = size, .kind = kind};
    cuda_result rc = CUDA_OK;
    cuda_pointer p = 0;
    void *host = NULL;
    const size_t bytes = size ? size : 1;
    switch (kind) {
    case AREA_DEVICE:
        rc = cu.alloc(&p, bytes);
        break;
    case AREA_POOL:
        rc = cu.alloc_async(&p, bytes, NULL);
        cu.synchronize();
        break;
    case AREA_MANAGED:
        rc = cu.alloc_managed(&p, bytes, 1);
        break;
    case AREA_PINNED:
        rc = cu.alloc_host(&host, bytes);
        break;
    case AREA_VMM:
        p = program_map(round_up_to_units(bytes), round_up_to_units(bytes), CUDA_HANDLE_POSIX_FD);
        break;
    case AREA_VMM_PIECES:
        p = program_map(round_up_to_units(bytes), PROGRAM_UNIT, CUDA_HANDLE_POSIX_FD);
        break;
    case AREA_VMM_PRIVATE:
        p = program_map(round_up_to_units(bytes), round_up_to_units(bytes), 0);
        break;
    default:
        host = malloc(bytes);
    }
    area_require_success(rc, "allocation", kind);
    a.at = host ? host : (char *)p;
    return a;
}

void area_free(struct area *a)
{
    if (a->kind == AREA_POOL || a->kind >= AREA_VMM)
        cu.synchronize(); /* freeing these kinds does not wait for copies in flight */
    if (a->kind == AREA_HOST)
        free(a->at);
    else if (a->kind >= AREA_VMM)
        program_unmap((cuda_pointer)a->at, round_up_to_units(a->size ? a->size : 1));
    else
        area_require_success(a->kind == AREA_PINNED ? cu.free_host(a->at) : cu.free((cuda_pointer)a->at),
                             "release", a->kind);
    a->at = NULL;
}

static bool is_host_accessible(const struct area *a)
{
    return a->kind != AREA_DEVICE && a->kind != AREA_POOL && a->kind < AREA_VMM;
}

void area_write(const struct area *a, size_t at, const void *from, size_t size)
{
    if (is_host_accessible(a))
        memcpy(a->at + at, from, size);
    else if (size)
        area_require_success(cu.to_device((cuda_pointer)a->at + at, from, size), "a copy", a->kind);
}

void area_read(const struct area *a, size_t at, void *to, size_t size)
{
    if (is_host_accessible(a))
        memcpy(to, a->at + at, size);
    else if (size)
        area_require_success(cu.to_host(to, (cuda_pointer)a->at + at, size), "a copy", a->kind);
}

void area_pattern(char *out, size_t size, unsigned seed)
{
    unsigned x = seed * 2654435761u + 1;
    for (size_t i = 0; i < size; i++) {
        x = x * 1664525u + 1013904223u;
        out[i] = (char)(x >> 24);
    }
}

void area_fill(const struct area *a, unsigned seed)
{
    char *bytes = malloc(a->size + 1);
    area_pattern(bytes, a->size, seed);
    area_write(a, 0, bytes, a->size);
    free(bytes);
}
