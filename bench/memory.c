/* memory.c: --memory: buffers in host, GPU or pinned memory. The CUDA driver is loaded at run time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

const char *const bench_memories[] = {"host",        "cuda",        "host-cuda", "cuda-host",
                                      "cuda-pinned", "pinned-cuda", "pinned",    NULL};

/* Kinds of memory for each value of --memory: [0] of even ranks, [1] of odd ranks. */
static const enum bench_memory kinds[][2] = {
    {BENCH_HOST, BENCH_HOST},     {BENCH_DEVICE, BENCH_DEVICE}, {BENCH_HOST, BENCH_DEVICE},
    {BENCH_DEVICE, BENCH_HOST},   {BENCH_DEVICE, BENCH_PINNED}, {BENCH_PINNED, BENCH_DEVICE},
    {BENCH_PINNED, BENCH_PINNED},
};

/* Functions of the CUDA driver; 0 means success. */
static struct {
    void *library;
    int (*init)(unsigned);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*alloc)(unsigned long long *, size_t);
    int (*alloc_host)(void **, size_t);
    int (*free)(unsigned long long);
    int (*free_host)(void *);
    int (*to_device)(unsigned long long, const void *, size_t);
    int (*to_host)(void *, unsigned long long, size_t);
} cuda;

static void memory_fail(const char *what)
{
    fprintf(stderr, "bench: --memory: %s.\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void memory_require(int result, const char *what)
{
    char text[128];
    if (result == 0)
        return;
    snprintf(text, sizeof(text), "%s failed with CUDA error %d", what, result);
    memory_fail(text);
}

static void memory_load_cuda(void)
{
    static const struct {
        void *where;
        const char *name;
    } wanted[] = {
        {&cuda.init, "cuInit"},
        {&cuda.retain, "cuDevicePrimaryCtxRetain"},
        {&cuda.set_current, "cuCtxSetCurrent"},
        {&cuda.alloc, "cuMemAlloc_v2"},
        {&cuda.alloc_host, "cuMemAllocHost_v2"},
        {&cuda.free, "cuMemFree_v2"},
        {&cuda.free_host, "cuMemFreeHost"},
        {&cuda.to_device, "cuMemcpyHtoD_v2"},
        {&cuda.to_host, "cuMemcpyDtoH_v2"},
    };
    void *context;
    if (cuda.library)
        return;
    cuda.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cuda.library)
        memory_fail("libcuda.so.1 cannot be loaded: this host has no CUDA driver");
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
        if (!(*(void **)wanted[i].where = dlsym(cuda.library, wanted[i].name)))
            memory_fail("the CUDA driver is too old");
    memory_require(cuda.init(0), "cuInit");
    memory_require(cuda.retain(&context, 0), "cuDevicePrimaryCtxRetain");
    memory_require(cuda.set_current(context), "cuCtxSetCurrent");
}

struct bench_buffer bench_buffer_new(const struct bench *b, int rank, size_t bytes)
{
    struct bench_buffer new = {.bytes = bytes, .kind = kinds[b->options.memory][rank % 2]};
    unsigned long long address = 0;
    void *pinned = NULL;
    if (new.kind == BENCH_HOST) {
        new.at = bench_alloc(bytes);
        return new;
    }
    memory_load_cuda();
    if (new.kind == BENCH_DEVICE)
        memory_require(cuda.alloc(&address, bytes ? bytes : 1), "cuMemAlloc");
    else
        memory_require(cuda.alloc_host(&pinned, bytes ? bytes : 1), "cuMemAllocHost");
    new.at = pinned ? pinned : (void *)(uintptr_t)address;
    return new;
}

void bench_buffer_free(struct bench_buffer *b)
{
    if (b->kind == BENCH_HOST)
        free(b->at);
    else if (b->kind == BENCH_DEVICE)
        memory_require(cuda.free((uintptr_t)b->at), "cuMemFree");
    else
        memory_require(cuda.free_host(b->at), "cuMemFreeHost");
    b->at = NULL;
}

void bench_buffer_write(const struct bench_buffer *b, const void *from, size_t bytes)
{
    if (b->kind == BENCH_DEVICE)
        memory_require(cuda.to_device((uintptr_t)b->at, from, bytes), "cuMemcpyHtoD");
    else
        memcpy(b->at, from, bytes);
}

void bench_buffer_read(const struct bench_buffer *b, void *to, size_t bytes)
{
    if (b->kind == BENCH_DEVICE)
        memory_require(cuda.to_host(to, (uintptr_t)b->at, bytes), "cuMemcpyDtoH");
    else
        memcpy(to, b->at, bytes);
}
