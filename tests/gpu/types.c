/* types.c: derived datatypes in device memory: 400 random nested types are packed and unpacked in parts
 * and compared with the model of tests/unit/dt; and large regular types, for which all three methods (one
 * copy, rows, kernel) must be used.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dt/device_pack.h"
#include "dt/layout.h"
#include "gpu/gpu.h"
#include "program.h"
#include "test.h"

#include "../unit/dt/random_type.h"

#define ROUNDS 400

/* Host and device memory of exactly the bytes that `count` elements may access, and the addresses that a
 * user would pass. */
struct twin_buffer {
    char *memory, *buffer;
    cuda_pointer device;
    char *device_buffer;
    size_t size;
};

static struct twin_buffer twin_buffer_alloc(const struct model *m, int64_t count)
{
    int64_t low, high, extent = model_extent(m), reach = (count - 1) * extent;
    model_true_bounds(m, &low, &high);
    low += reach < 0 ? reach : 0;
    high += reach > 0 ? reach : 0;
    struct twin_buffer a = {.size = (size_t)(high - low)};
    a.memory = malloc(a.size + 1);
    a.buffer = ptr_add(a.memory, -low);
    a.device = program_alloc(a.size + 1);
    a.device_buffer = ptr_add((void *)a.device, -low);
    random_fill(a.memory, a.size);
    EXPECT_EQ(gpu_copy((void *)a.device, a.memory, a.size), 0);
    return a;
}

static void twin_buffer_free(struct twin_buffer *a)
{
    program_free(a->device);
    free(a->memory);
}

/* True if the type contains a byte twice: such a type must not be unpacked. */
static bool has_overlap(const struct type_pair *m, int64_t count, const struct twin_buffer *a)
{
    const size_t bytes = (size_t)(m->type->size * count);
    unsigned char *seen = calloc(1, a->size + 1);
    struct dt_cursor c;
    void *piece;
    size_t at = 0, n;
    bool overlap = false;
    dt_cursor_init(&c, m->type, count, a->buffer);
    while (at < bytes && (n = dt_cursor_next(&c, bytes, &piece)) > 0) {
        for (size_t i = 0; i < n; i++)
            overlap |= seen[(char *)piece - a->memory + (ptrdiff_t)i]++ > 0;
        at += n;
    }
    free(seen);
    return overlap;
}

/* Returns the length of the next part: half of the time everything that is left. */
static size_t choose_part_length(size_t left)
{
    const size_t part = (size_t)random_in_range(1, 999);
    return random_in_range(0, 1) || part > left ? left : part;
}

static void check_type(const struct type_pair *m, int64_t count)
{
    const size_t bytes = (size_t)(m->type->size * count);
    struct twin_buffer a = twin_buffer_alloc(&m->model, count);
    char *wanted = malloc(bytes + 1), *got = malloc(bytes + 1);
    struct dt_cursor c;
    model_pack(&m->model, count, a.buffer, wanted);
    dt_cursor_init(&c, m->type, count, a.device_buffer);
    for (size_t at = 0; at < bytes;) {
        const size_t n = choose_part_length(bytes - at);
        EXPECT_EQ(dt_device_pack(&c, got + at, n), 0);
        at += n;
        EXPECT_EQ(c.position, at);
    }
    EXPECT(memcmp(wanted, got, bytes) == 0);
    if (!has_overlap(m, count, &a)) {
        char *back = malloc(a.size + 1);
        random_fill(got, bytes);
        const size_t len = bytes && random_in_range(0, 1) ? random_bits() % bytes : bytes;
        model_unpack(&m->model, count, a.buffer, got, len);
        dt_cursor_init(&c, m->type, count, a.device_buffer);
        for (size_t at = 0; at < len;) {
            const size_t n = choose_part_length(len - at);
            EXPECT_EQ(dt_device_unpack(&c, got + at, n), 0);
            at += n;
        }
        EXPECT_EQ(gpu_copy(back, (void *)a.device, a.size), 0);
        EXPECT(memcmp(a.memory, back, a.size) == 0);
        free(back);
    }
    free(wanted);
    free(got);
    twin_buffer_free(&a);
}

static void test_random_types(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct type_pair m = random_type(random_in_range(0, 3));
        const int64_t count = random_in_range(0, 4);
        const int before = test_failures;
        dtype_commit(m.type);
        check_type(&m, count);
        if (test_failures > before)
            printf("failed in round %d\n", i);
        type_pair_free(&m);
    }
}

/* Packs a large type to pinned, device and ordinary memory and compares the results. */
static void check_large(struct dtype *type, const char *what)
{
    const size_t bytes = (size_t)type->size, span = (size_t)(type->true_lb + type->true_extent);
    char *host = malloc(span), *wanted = malloc(bytes), *got = malloc(bytes);
    cuda_pointer device = program_alloc(span), dense = program_alloc(bytes);
    struct dt_cursor c;
    random_fill(host, span);
    dt_pack_all(type, 1, host, wanted);
    EXPECT_EQ(gpu_copy((void *)device, host, span), 0);
    for (int turn = 0; turn < 2; turn++) {
        memset(got, 0, bytes);
        dt_cursor_init(&c, type, 1, (void *)device);
        const uint64_t t = clock_ns();
        EXPECT_EQ(dt_device_pack(&c, turn ? (void *)dense : got, bytes), 0);
        printf("%s, %zu bytes to %s memory: %.0f us\n", what, bytes, turn ? "device" : "host",
               (double)(clock_ns() - t) / 1e3);
        if (turn)
            EXPECT_EQ(gpu_copy(got, (void *)dense, bytes), 0);
        EXPECT(memcmp(wanted, got, bytes) == 0);
    }
    memset(host, 0, span);
    EXPECT_EQ(gpu_copy((void *)device, host, span), 0);
    dt_unpack_all(type, 1, host, wanted, bytes);
    dt_cursor_init(&c, type, 1, (void *)device);
    EXPECT_EQ(dt_device_unpack(&c, wanted, bytes), 0);
    char *back = malloc(span);
    EXPECT_EQ(gpu_copy(back, (void *)device, span), 0);
    EXPECT(memcmp(host, back, span) == 0);
    program_free(device);
    program_free(dense);
    free(host);
    free(wanted);
    free(got);
    free(back);
}

static void test_large_types(void)
{
    struct dtype *column, *plane, *cube = dt_predefined(0x214 /* MPI_DOUBLE */);
    dtype_vector(4096, 4, 512, dt_predefined(0x214), false, &column);
    dtype_commit(column);
    check_large(column, "4 columns of a matrix");
    dtype_release(column);
    /* One face of a cube of 128^3 doubles: nested rows. */
    struct dtype *row;
    dtype_vector(128, 1, 128, cube, false, &row);
    dtype_hvector(128, 1, (MPI_Aint)128 * 128 * 8, row, false, &plane);
    dtype_commit(plane);
    check_large(plane, "a face of a cube");
    dtype_release(plane);
    dtype_release(row);
}

int main(void)
{
    program_open();
    TEST_RUN(test_random_types);
    TEST_RUN(test_large_types);
    gpu_close();
    return test_result();
}
