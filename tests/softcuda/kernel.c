/* kernel.c: the library's GPU kernels by name, executed by the processor: the reductions are those of
 * src/dt/kernel.c, which kernels.cu repeats for GPUs, and two kernels copy blocks. PTX is not interpreted;
 * any image that begins like the library's is accepted as a module.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dt/kernel.h"
#include "gpu/kernels.h"
#include "softcuda.h"

struct cuda_function {
    char name[32];
    op_kernel *reduce; /* NULL: a kernel that copies blocks */
    size_t size;       /* bytes of an element */
};

struct cuda_module {
    struct origin origin;
};

static const char *const operators[] = {"sum",  "prod", "min", "max",  "band",   "bor",
                                        "bxor", "land", "lor", "lxor", "minloc", "maxloc"};

/* The element types of GPU kernels. */
static const struct {
    const char *name;
    enum dt_num num;
    size_t size, half; /* half: alignment in bytes */
} types[] = {
    {"I8", NUM_I8, 1, 1},       {"I16", NUM_I16, 2, 2}, {"I32", NUM_I32, 4, 4}, {"I64", NUM_I64, 8, 8},
    {"U8", NUM_U8, 1, 1},       {"U16", NUM_U16, 2, 2}, {"U32", NUM_U32, 4, 4}, {"U64", NUM_U64, 8, 8},
    {"F32", NUM_F32, 4, 4},     {"F64", NUM_F64, 8, 8}, {"C32", NUM_C32, 8, 4}, {"C64", NUM_C64, 16, 8},
    {"I128", NUM_I128, 16, 16},
};
#define TYPES (sizeof(types) / sizeof(*types))

static size_t find_type(const char *name, size_t length)
{
    size_t i = 0;
    while (i < TYPES && (strlen(types[i].name) != length || memcmp(types[i].name, name, length) != 0))
        i++;
    return i;
}

/* Parses the name of a reduction kernel, such as "fp_sum_I32" or "fp_minloc_F64_I32". */
static bool find_reduction(const char *name, struct cuda_function *out)
{
    size_t code = 0;
    const char *it = name + 3, *end = strchr(it, '_');
    while (end && code < sizeof(operators) / sizeof(*operators) &&
           (strlen(operators[code]) != (size_t)(end - it) ||
            memcmp(operators[code], it, (size_t)(end - it)) != 0))
        code++;
    if (!end || code == sizeof(operators) / sizeof(*operators))
        return false;
    const char *value = end + 1, *index = strchr(value, '_');
    const size_t v = find_type(value, index ? (size_t)(index - value) : strlen(value));
    const size_t x = index ? find_type(index + 1, strlen(index + 1)) : 0;
    if (v == TYPES || x == TYPES)
        return false;
    if (!index) {
        out->reduce = op_kernel_for((enum op_code)code, types[v].num);
        out->size = types[v].size;
    } else {
        const size_t align = types[v].half > types[x].half ? types[v].half : types[x].half;
        const size_t at = (types[v].size + types[x].half - 1) / types[x].half * types[x].half;
        out->reduce = op_kernel_pair((enum op_code)code, types[v].num, types[x].num);
        out->size = (at + types[x].size + align - 1) / align * align;
    }
    return out->reduce != NULL;
}

EXPORT cuda_result cuModuleLoadData(cuda_module *module, const void *image)
{
    if (!softcuda_current())
        return CUDA_INVALID_CONTEXT;
    if (softcuda_must_fail(__func__) || strncmp(image, "// Made by tools/make-ptx", 25) != 0)
        return CUDA_INVALID_VALUE;
    if (!(*module = calloc(1, sizeof(**module))))
        return CUDA_OUT_OF_MEMORY;
    (*module)->origin = softcuda_origin();
    return CUDA_OK;
}

/* Functions exist until the program ends; each name is looked up once. */
EXPORT cuda_result cuModuleGetFunction(cuda_function *function, cuda_module module, const char *name)
{
    static struct cuda_function known[256];
    static size_t count;
    cuda_result result = CUDA_NOT_FOUND;
    if (!softcuda_is_valid(&module->origin))
        return CUDA_INVALID_HANDLE;
    pthread_mutex_lock(&softcuda_lock);
    size_t i = 0;
    while (i < count && strcmp(known[i].name, name) != 0)
        i++;
    struct cuda_function *it = &known[i];
    const bool moves = strcmp(name, "fp_gather") == 0 || strcmp(name, "fp_scatter") == 0;
    if (i < count || (i < 256 && strncmp(name, "fp_", 3) == 0 && strlen(name) < sizeof(it->name) &&
                      (moves || find_reduction(name, it)))) {
        if (i == count) {
            strcpy(it->name, name);
            count++;
        }
        *function = it;
        result = CUDA_OK;
    }
    pthread_mutex_unlock(&softcuda_lock);
    return result;
}

/* True if a kernel of the current context may access the memory. Nobody calls cuCtxEnablePeerAccess: memory
 * of another device is accessible only if this context has opened its IPC handle. */
static bool is_accessible(const struct allocation *it)
{
    const int device = softcuda_current()->device;
    switch (it->kind) {
    case MEMORY_DEVICE:
    case MEMORY_POOL:
    case MEMORY_VMM:
        return it->device == device;
    case MEMORY_IMPORTED:
        return it->opened_by == device;
    default:
        return true;
    }
}

/* A kernel cannot access host memory that the driver does not know. */
static char *translate_for_kernel(uintptr_t address, uint64_t size)
{
    pthread_mutex_lock(&softcuda_lock);
    const struct allocation *found = softcuda_find(address, size);
    char *it = found && is_accessible(found) ? softcuda_translate(address, size) : NULL;
    pthread_mutex_unlock(&softcuda_lock);
    return it;
}

static cuda_result run_block_copy(bool gathers, void **arguments)
{
    const uintptr_t base = *(uintptr_t *)arguments[0], dense = *(uintptr_t *)arguments[1];
    const uint64_t count = *(uint64_t *)arguments[3];
    const struct gpu_segment *s =
        (void *)translate_for_kernel(*(uintptr_t *)arguments[2], count * sizeof(*s));
    if (!s)
        return CUDA_ILLEGAL_ADDRESS;
    for (uint64_t i = 0; i < count; i++) {
        char *block = translate_for_kernel(base + (uintptr_t)s[i].offset, s[i].length),
             *bytes = translate_for_kernel(dense + s[i].start, s[i].length);
        if (!block || !bytes)
            return CUDA_ILLEGAL_ADDRESS;
        memcpy(gathers ? bytes : block, gathers ? block : bytes, s[i].length);
    }
    return CUDA_OK;
}

/* Executes the earlier operations of the stream and then, at once, the kernel. */
EXPORT cuda_result cuLaunchKernel(cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                  cuda_stream stream, void **arguments, void **extra)
{
    if (!softcuda_current())
        return CUDA_INVALID_CONTEXT;
    if (grid_x == 0 || block_x == 0 || block_x > 1024 || grid_y != 1 || grid_z != 1 || block_y != 1 ||
        block_z != 1 || shared_bytes || extra || softcuda_must_fail(__func__))
        return CUDA_INVALID_VALUE;
    const cuda_result before = cuStreamSynchronize(stream);
    if (before != CUDA_OK)
        return before;
    if (!function->reduce)
        return run_block_copy(strcmp(function->name, "fp_gather") == 0, arguments);
    const uint64_t count = *(uint64_t *)arguments[3], size = count * function->size;
    char *operands[3];
    for (int i = 0; i < 3; i++)
        if (!(operands[i] = translate_for_kernel(*(uintptr_t *)arguments[i], size)))
            return CUDA_ILLEGAL_ADDRESS;
    function->reduce(operands[0], operands[1], operands[2], count);
    return CUDA_OK;
}
