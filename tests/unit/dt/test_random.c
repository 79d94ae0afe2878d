/* test_random.c: compares random nested types with the model: sizes and bounds, packing and unpacking in
 * fragments, contiguous pieces, copies, element counts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "dt/count.h"
#include "dt/dtype.h"
#include "dt/external.h"
#include "dt/kind.h"
#include "random_type.h"

#define ROUNDS 3000

/* A buffer of exactly the bytes that `count` elements may access, so that a sanitizer detects any further
 * access. */
struct exact_buffer {
    char *memory;
    size_t size;
    char *buffer; /* the address that a user would pass */
};

static struct exact_buffer make_exact_buffer(const struct model *m, int64_t count)
{
    int64_t low, high, extent = model_extent(m), reach = (count - 1) * extent;
    model_true_bounds(m, &low, &high);
    low += reach < 0 ? reach : 0;
    high += reach > 0 ? reach : 0;
    struct exact_buffer a = {.size = (size_t)(high - low)};
    a.memory = malloc(a.size + 1);
    a.buffer = ptr_add(a.memory, -low);
    random_fill(a.memory, a.size);
    return a;
}

static void check_bounds(const struct type_pair *m)
{
    int64_t low, high;
    model_true_bounds(&m->model, &low, &high);
    EXPECT_EQ(m->type->size, model_size(&m->model));
    EXPECT_EQ(m->type->elements, m->model.count);
    EXPECT_EQ(m->type->lb, model_lb(&m->model));
    EXPECT_EQ(m->type->extent, model_extent(&m->model));
    EXPECT_EQ(m->type->true_lb, low);
    EXPECT_EQ(m->type->true_extent, high - low);
}

static void check_span(const struct type_pair *m, int64_t count)
{
    int64_t low = 0, high = 0, extent = model_extent(&m->model), reach = (count - 1) * extent;
    MPI_Aint gap;
    model_true_bounds(&m->model, &low, &high);
    EXPECT_EQ(dt_span(m->type, count, &gap), count == 0 ? 0 : high - low + llabs(reach));
    EXPECT_EQ(gap, count > 0 && reach < 0 ? low + reach : low);
}

static void check_pack(const struct type_pair *m, int64_t count)
{
    size_t bytes = (size_t)(m->type->size * count);
    struct exact_buffer a = make_exact_buffer(&m->model, count);
    char *wanted = malloc(bytes + 1), *got = malloc(bytes + 1);
    model_pack(&m->model, count, a.buffer, wanted);

    dt_pack_all(m->type, count, a.buffer, got);
    EXPECT(memcmp(wanted, got, bytes) == 0);

    struct dt_cursor c;
    memset(got, 0, bytes);
    dt_cursor_init(&c, m->type, count, a.buffer);
    for (size_t at = 0, n; (n = dt_cursor_pack(&c, got + at, (size_t)random_in_range(1, 70))) > 0;)
        at += n;
    EXPECT_EQ(c.position, bytes);
    EXPECT(memcmp(wanted, got, bytes) == 0);

    if (bytes > 0) {
        size_t from = random_bits() % bytes, n = random_bits() % (bytes - from) + 1;
        dt_cursor_seek(&c, from);
        EXPECT_EQ(dt_cursor_pack(&c, got, n), n);
        EXPECT(memcmp(wanted + from, got, n) == 0);
    }

    MPI_Aint offset;
    if (dt_is_contiguous_block(m->type, count, &offset))
        EXPECT(memcmp(wanted, a.buffer + offset, bytes) == 0);
    free(wanted);
    free(got);
    free(a.memory);
}

static void check_unpack(const struct type_pair *m, int64_t count)
{
    size_t bytes = (size_t)(m->type->size * count), len = bytes ? random_bits() % (bytes + 1) : 0;
    struct exact_buffer wanted = make_exact_buffer(&m->model, count),
                        got = make_exact_buffer(&m->model, count);
    char *in = malloc(bytes + 1);
    random_fill(in, bytes);
    memcpy(got.memory, wanted.memory, got.size);
    len = random_in_range(0, 2) ? bytes : len;
    model_unpack(&m->model, count, wanted.buffer, in, len);

    struct dt_cursor c;
    dt_cursor_init(&c, m->type, count, got.buffer);
    for (size_t at = 0; at < len;) {
        size_t n = (size_t)random_in_range(1, 90);
        at += dt_cursor_unpack(&c, in + at, n < len - at ? n : len - at);
    }
    EXPECT(memcmp(wanted.memory, got.memory, got.size) == 0);
    free(in);
    free(wanted.memory);
    free(got.memory);
}

static void check_pieces(const struct type_pair *m, int64_t count)
{
    size_t bytes = (size_t)(m->type->size * count), at = 0, n;
    struct exact_buffer a = make_exact_buffer(&m->model, count);
    char *wanted = malloc(bytes + 1), *got = malloc(bytes + 1);
    void *piece;
    model_pack(&m->model, count, a.buffer, wanted);
    struct dt_cursor c;
    dt_cursor_init(&c, m->type, count, a.buffer);
    while ((n = dt_cursor_next(&c, random_in_range(0, 3) ? 1000000 : (size_t)random_in_range(1, 20),
                               &piece)) > 0) {
        memcpy(got + at, piece, n);
        at += n;
        if (at < bytes && random_in_range(0, 9) == 0) {
            struct dt_cursor copy = c; /* cursors may be copied and mixed with packing */
            memset(&c, 0xee, sizeof(c));
            c = copy;
            at += dt_cursor_pack(&c, got + at, (size_t)random_in_range(1, 30));
        }
    }
    EXPECT_EQ(at, bytes);
    EXPECT(memcmp(wanted, got, bytes) == 0);
    free(wanted);
    free(got);
    free(a.memory);
}

static void check_counts(const struct type_pair *m)
{
    MPI_Count size = m->type->size, got, wanted = 0, at = 0, back;
    if (size == 0)
        return;
    MPI_Count bytes = (MPI_Count)(random_bits() % (uint64_t)(2 * size + 1));
    dt_get_count(m->type, bytes, &got);
    EXPECT_EQ(got, bytes % size ? MPI_UNDEFINED : bytes / size);
    while (at < bytes)
        at += m->model.entry[wanted++ % (MPI_Count)m->model.count].basic->size;
    dt_get_elements(m->type, bytes, &got);
    EXPECT_EQ(got, at == bytes ? wanted : MPI_UNDEFINED);
    EXPECT_EQ(dt_set_elements(m->type, wanted, &back), 0);
    EXPECT_EQ(back, at);
}

static void check_external(const struct type_pair *m)
{
    MPI_Count wanted = 0;
    for (size_t i = 0; i < m->model.count; i++)
        wanted += dt_kinds[m->model.entry[i].basic->kind].external;
    EXPECT_EQ(dt_external_size(m->type, 1), wanted);
}

static void check_copy(const struct type_pair *from, const struct type_pair *to)
{
    MPI_Count n = random_in_range(0, 3), k = random_in_range(0, 3);
    struct exact_buffer a = make_exact_buffer(&from->model, n), wanted = make_exact_buffer(&to->model, k),
                        got = make_exact_buffer(&to->model, k);
    size_t bytes = (size_t)(from->type->size * n), room = (size_t)(to->type->size * k);
    char *packed = malloc(bytes + 1);
    memcpy(got.memory, wanted.memory, got.size);
    model_pack(&from->model, n, a.buffer, packed);
    model_unpack(&to->model, k, wanted.buffer, packed, bytes < room ? bytes : room);
    int rc = dt_copy(a.buffer, n, from->type, got.buffer, k, to->type);
    EXPECT_EQ(rc, bytes > room ? MPI_ERR_TRUNCATE : 0);
    EXPECT(memcmp(wanted.memory, got.memory, got.size) == 0);
    free(packed);
    free(a.memory);
    free(wanted.memory);
    free(got.memory);
}

static void test_random_types(void)
{
    struct type_pair last = random_basic_type();
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        int before = test_failures;
        random_state = seed * 0x9e3779b97f4a7c15u;
        struct type_pair m = random_type(random_in_range(1, 4));
        EXPECT_EQ(dtype_commit(m.type), 0);
        check_bounds(&m);
        int64_t count = random_in_range(0, 4);
        check_span(&m, count);
        check_pack(&m, count);
        check_unpack(&m, count);
        check_pieces(&m, count);
        check_counts(&m);
        check_external(&m);
        check_copy(&last, &m);
        type_pair_free(&last);
        last = m;
        if (test_failures != before)
            printf("  failed with seed %llu\n", (unsigned long long)seed);
        if (test_failures > 20)
            break;
    }
    type_pair_free(&last);
}

int main(void)
{
    TEST_RUN(test_random_types);
    return test_result();
}
