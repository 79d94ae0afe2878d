/* kernels.c: compares the kernels of src/gpu/kernels.cu with the loops of src/dt: every operator with
 * every type that GPUs support, and blocks of derived datatypes. Also a benchmark: `kernels bench` prints
 * GB/s.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "dt/kernel.h"
#include "gpu/gpu.h"
#include "gpu/kernels.h"
#include "program.h"
#include "test.h"

#define COUNT 5003

static const char *const names[] = {"sum", "prod", "min",  "max", "band",
                                    "bor", "bxor", "land", "lor", "lxor"};
static const struct {
    const char *name;
    enum dt_num num;
    size_t size, alignment;
} types[] = {
    {"I8", NUM_I8, 1, 1},       {"I16", NUM_I16, 2, 2}, {"I32", NUM_I32, 4, 4}, {"I64", NUM_I64, 8, 8},
    {"I128", NUM_I128, 16, 16}, {"U8", NUM_U8, 1, 1},   {"U16", NUM_U16, 2, 2}, {"U32", NUM_U32, 4, 4},
    {"U64", NUM_U64, 8, 8},     {"F32", NUM_F32, 4, 4}, {"F64", NUM_F64, 8, 8}, {"C32", NUM_C32, 8, 4},
    {"C64", NUM_C64, 16, 8},    {"FL", NUM_FL, 16, 16},
};
#define TYPES (sizeof(types) / sizeof(*types))

static bool is_floating(enum dt_num num)
{
    return num == NUM_F32 || num == NUM_F64 || num == NUM_C32 || num == NUM_C64;
}

/* Integers get random bits. Floating-point numbers get small integers and zeros, so that no result depends
 * on rounding. */
static void fill_operand(char *to, size_t type, unsigned seed)
{
    srand(seed);
    if (!is_floating(types[type].num)) {
        for (size_t i = 0; i < COUNT * types[type].size; i++)
            to[i] = (char)(rand() >> 7);
        return;
    }
    const size_t values = COUNT * types[type].size / types[type].alignment;
    for (size_t i = 0; i < values; i++)
        if (types[type].alignment == 4)
            ((float *)(void *)to)[i] = (float)(rand() % 9 - 4);
        else
            ((double *)(void *)to)[i] = (double)(rand() % 9 - 4);
}

static void compare_reduction(const char *kernel, op_kernel *loop, size_t type, size_t size, size_t alignment)
{
    const size_t bytes = COUNT * size;
    char *a = calloc(1, bytes), *b = calloc(1, bytes), *expected = calloc(1, bytes),
         *found = calloc(1, bytes);
    cuda_pointer x = program_alloc(bytes), y = program_alloc(bytes);
    if (type < TYPES) {
        fill_operand(a, type, 1);
        fill_operand(b, type, 2);
    } else {
        for (size_t i = 0; i < bytes; i += 4) { /* pairs: small numbers, so that many values are equal */
            const int values[] = {rand() % 3, rand() % 3};
            memcpy(a + i, &values[0], 4);
            memcpy(b + i, &values[1], 4);
        }
    }
    memcpy(expected, b, bytes); /* padding does not change */
    loop(a, expected, expected, COUNT);
    EXPECT_EQ(gpu_copy((void *)x, a, bytes), 0);
    EXPECT_EQ(gpu_copy((void *)y, b, bytes), 0);
    const int rc = gpu_reduce(kernel, (void *)x, (void *)y, (void *)y, COUNT, alignment);
    if (rc)
        printf("%s: %d %s\n", kernel, rc, err_detail(rc));
    EXPECT_EQ(rc, 0);
    EXPECT_EQ(gpu_copy(found, (void *)y, bytes), 0);
    if (memcmp(expected, found, bytes) != 0) {
        printf("kernel %s: the result differs from that of the host loop\n", kernel);
        test_failures++;
    }
    program_free(x);
    program_free(y);
    free(a);
    free(b);
    free(expected);
    free(found);
}

static void test_reductions(void)
{
    char kernel[32];
    int run = 0;
    for (size_t t = 0; t < TYPES; t++)
        for (size_t op = 0; op < OP_ARITHMETIC_LIMIT; op++) {
            op_kernel *loop = op_kernel_for((enum op_code)op, types[t].num);
            snprintf(kernel, sizeof(kernel), "%s_%s", names[op], types[t].name);
            if (!loop)
                continue;
            if (types[t].num == NUM_FL) { /* NUM_FL has no GPU kernel: gpu_reduce must return ERR_AGAIN */
                cuda_pointer x = program_alloc(1024);
                EXPECT_EQ(gpu_reduce(kernel, (void *)x, (void *)x, (void *)x, 1, 16), ERR_AGAIN);
                program_free(x);
                continue;
            }
            compare_reduction(kernel, loop, t, types[t].size, types[t].alignment);
            run++;
        }
    printf("%d reductions\n", run);
    EXPECT_EQ(run, 108);
}

/* {float, int}, {double, int}, ...: values and indices of which many are equal. */
static void test_pairs(void)
{
    struct pair {
        double v;
        int i;
    } a[COUNT], b[COUNT], expected[COUNT], found[COUNT];
    for (int k = 0; k < COUNT; k++) {
        a[k] = (struct pair){rand() % 3, rand() % 3};
        b[k] = (struct pair){rand() % 3, rand() % 3};
    }
    static const char *const kernels[] = {"minloc_F64_I32", "maxloc_F64_I32"};
    for (int op = 0; op < 2; op++) {
        cuda_pointer x = program_alloc(sizeof(a)), y = program_alloc(sizeof(b));
        op_kernel_pair((enum op_code)(OP_MINLOC + op), NUM_F64, NUM_I32)(a, b, expected, COUNT);
        EXPECT_EQ(gpu_copy((void *)x, a, sizeof(a)), 0);
        EXPECT_EQ(gpu_copy((void *)y, b, sizeof(b)), 0);
        EXPECT_EQ(gpu_reduce(kernels[op], (void *)x, (void *)y, (void *)y, COUNT, 8), 0);
        EXPECT_EQ(gpu_copy(found, (void *)y, sizeof(found)), 0);
        for (int k = 0; k < COUNT; k++)
            if (found[k].v != expected[k].v || found[k].i != expected[k].i) {
                printf("%s: element %d is (%g, %d), expected (%g, %d)\n", kernels[op], k, found[k].v,
                       found[k].i, expected[k].v, expected[k].i);
                test_failures++;
                break;
            }
        program_free(x);
        program_free(y);
    }
    static const struct {
        const char *name;
        enum dt_num value, index;
        size_t size, alignment;
    } others[] = {{"minloc_F32_I32", NUM_F32, NUM_I32, 8, 4}, {"maxloc_I64_I32", NUM_I64, NUM_I32, 16, 8},
                  {"minloc_I32_I32", NUM_I32, NUM_I32, 8, 4}, {"maxloc_I16_I32", NUM_I16, NUM_I32, 8, 4},
                  {"maxloc_F32_F32", NUM_F32, NUM_F32, 8, 4}, {"minloc_F64_F64", NUM_F64, NUM_F64, 16, 8}};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        compare_reduction(others[i].name,
                          op_kernel_pair(others[i].name[1] == 'i' ? OP_MINLOC : OP_MAXLOC, others[i].value,
                                         others[i].index),
                          TYPES, others[i].size, others[i].alignment);
}

static void test_unaligned_operands(void)
{
    cuda_pointer x = program_alloc(1024);
    EXPECT_EQ(gpu_reduce("sum_F64", (void *)(x + 4), (void *)x, (void *)x, 2, 8), ERR_AGAIN);
    program_free(x);
}

static void test_gather_and_scatter(void)
{
    struct gpu_segment *segments = gpu_get_staging();
    char *host = malloc(1 << 20), *dense = gpu_get_staging(), *back = calloc(1, 1 << 20);
    cuda_pointer x = program_alloc(1 << 20), y = program_alloc(1 << 20);
    uint64_t start = 0;
    size_t count = 0;
    for (size_t i = 0; i < 1 << 20; i++)
        host[i] = (char)(i * 7 + (i >> 8));
    srand(3);
    for (int64_t offset = 0; offset + 2000 < 1 << 20 && start + 2000 < GPU_STAGING_SIZE; count++) {
        const uint64_t length = (uint64_t)(rand() % 3 == 0 ? rand() % 1999 + 1 : 16 * (rand() % 9 + 1));
        segments[count] = (struct gpu_segment){.offset = offset, .start = start, .length = length};
        start += length;
        offset += (int64_t)length + rand() % 40;
    }
    EXPECT_EQ(gpu_copy((void *)x, host, 1 << 20), 0);
    EXPECT_EQ(gpu_gather(dense, (void *)x, segments, count), 0);
    for (size_t k = 0; k < count; k++)
        EXPECT_EQ(memcmp(dense + segments[k].start, host + segments[k].offset, segments[k].length), 0);
    EXPECT_EQ(gpu_copy((void *)y, back, 1 << 20), 0);
    EXPECT_EQ(gpu_scatter((void *)y, dense, segments, count), 0);
    EXPECT_EQ(gpu_copy(back, (void *)y, 1 << 20), 0);
    size_t at = 0; /* gaps must still be zero */
    for (size_t k = 0; k < count; k++) {
        for (; at < (size_t)segments[k].offset; at++)
            EXPECT_EQ(back[at], 0);
        EXPECT_EQ(memcmp(back + at, host + at, segments[k].length), 0);
        at += segments[k].length;
    }
    printf("%zu blocks\n", count);
    gpu_put_staging(segments);
    gpu_put_staging(dense);
    program_free(x);
    program_free(y);
    free(host);
    free(back);
}

static void run_benchmark(void)
{
    const size_t bytes = (size_t)256 << 20;
    cuda_pointer x = program_alloc(bytes), y = program_alloc(bytes);
    struct gpu_segment *segments = gpu_get_staging();
    for (int turn = 0; turn < 3; turn++) {
        uint64_t t = clock_ns();
        EXPECT_EQ(gpu_reduce("sum_F64", (void *)x, (void *)y, (void *)y, bytes / 8, 8), 0);
        t = clock_ns() - t;
        printf("sum of 256 MiB of double: %.0f us, %.0f GB/s of memory traffic\n", (double)t / 1e3,
               3.0 * (double)bytes / (double)t);
        t = clock_ns();
        EXPECT_EQ(gpu_reduce("sum_F64", (void *)x, (void *)y, (void *)y, 1, 8), 0);
        printf("sum of 8 bytes: %.1f us\n", (double)(clock_ns() - t) / 1e3);
        for (size_t length = 16; length <= 1024; length *= 8) {
            const size_t n = 16384;
            for (size_t i = 0; i < n; i++)
                segments[i] = (struct gpu_segment){
                    .offset = (int64_t)(i * 4096), .start = i * length, .length = length};
            t = clock_ns();
            EXPECT_EQ(gpu_gather((void *)y, (void *)x, segments, n), 0);
            t = clock_ns() - t;
            printf("gather of 16384 blocks of %zu bytes: %.1f us, %.1f GB/s\n", length, (double)t / 1e3,
                   (double)(n * length) / (double)t);
        }
    }
    gpu_put_staging(segments);
    program_free(x);
    program_free(y);
}

int main(int argc, char **argv)
{
    program_open();
    if (argc > 1 && strcmp(argv[1], "bench") == 0) {
        run_benchmark();
    } else {
        TEST_RUN(test_reductions);
        TEST_RUN(test_pairs);
        TEST_RUN(test_unaligned_operands);
        TEST_RUN(test_gather_and_scatter);
    }
    gpu_close();
    return test_result();
}
