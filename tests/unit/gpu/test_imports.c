/* test_imports.c: mappings of other processes' GPU memory are cached in bounded number and size, are
 * closed when their owner has freed the memory, and are never closed while in use.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/imports.h"

#include <stdlib.h>

#include "base/err.h"
#include "test.h"

static int open_count, most_open;
static bool map_fails;

static int count_mapping(const struct gpu_export *exported, void **out)
{
    if (map_fails)
        return err_set(MPI_ERR_NO_MEM, "no address space");
    open_count++;
    most_open = open_count > most_open ? open_count : most_open;
    *out = malloc(1);
    (void)exported;
    return 0;
}

static void count_unmapping(const struct gpu_export *exported, void *address)
{
    (void)exported;
    open_count--;
    free(address);
}

/* Simulated mappings have this id, as long as the GPU context exists. */
static uint64_t context_id = 1;

static bool find_range(uintptr_t address, struct gpu_range *out)
{
    *out = (struct gpu_range){.start = address, .id = context_id};
    return true;
}

static const struct gpu_ops ops = {
    .map_export = count_mapping, .unmap_export = count_unmapping, .find_range = find_range};

static struct gpu_export make_export(int pid, uint64_t start, uint64_t id)
{
    return (struct gpu_export){.pid = pid, .start = start, .size = 100, .id = id};
}

static void test_mapping_is_reused(void)
{
    struct gpu_imports imports = {0};
    const struct gpu_export a = make_export(1, 1000, 1);
    void *first, *second;
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &a, &first), 0);
    gpu_imports_put(&imports, &ops, first);
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &a, &second), 0);
    EXPECT(first == second);
    EXPECT_EQ(open_count, 1);
    gpu_imports_put(&imports, &ops, second);
    gpu_imports_clear(&imports, &ops);
    EXPECT_EQ(open_count, 0);
}

/* 10,000 allocations at the same few addresses, as in a program that allocates in a loop: the next export
 * reveals each free. */
static void test_freed_memory_is_unmapped(void)
{
    struct gpu_imports imports = {0};
    most_open = 0;
    for (uint64_t id = 1; id <= 10000; id++) {
        const struct gpu_export it = make_export(1, 1000 + id % 4 * 50, id);
        void *address;
        EXPECT_EQ(gpu_imports_get(&imports, &ops, &it, &address), 0);
        gpu_imports_put(&imports, &ops, address);
    }
    EXPECT(most_open <= 2);
    gpu_imports_clear(&imports, &ops);
    EXPECT_EQ(open_count, 0);
}

static void test_number_of_mappings_is_bounded(void)
{
    struct gpu_imports imports = {0};
    void *address[GPU_IMPORTS_MOST], *one;
    most_open = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        const struct gpu_export it = make_export(1, 1000 * i, i);
        EXPECT_EQ(gpu_imports_get(&imports, &ops, &it, &one), 0);
        gpu_imports_put(&imports, &ops, one);
    }
    EXPECT_EQ(most_open, GPU_IMPORTS_MOST);
    /* All mappings are in use: a further mapping fails, and no mapping is closed. */
    for (uint64_t i = 0; i < GPU_IMPORTS_MOST; i++) {
        const struct gpu_export it = make_export(2, 1000 * i, i);
        EXPECT_EQ(gpu_imports_get(&imports, &ops, &it, &address[i]), 0);
    }
    const struct gpu_export more = make_export(3, 0, 1), outdates = make_export(2, 10, 99);
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &more, &one), ERR_AGAIN);
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &outdates, &one), ERR_AGAIN);
    EXPECT_EQ(open_count, GPU_IMPORTS_MOST);
    gpu_imports_put(&imports, &ops, address[7]);
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &more, &one), 0);
    gpu_imports_clear(&imports, &ops);
    EXPECT_EQ(open_count, 0);
}

/* GPU_IMPORT_BYTES is 4 GiB: mappings keep memory of the GPU allocated. */
static void test_bytes_of_idle_mappings_are_bounded(void)
{
    struct gpu_imports imports = {0};
    most_open = 0;
    for (uint64_t i = 0; i < 10; i++) {
        struct gpu_export it = make_export(1, i << 30, i);
        void *address;
        it.size = (uint64_t)1 << 30;
        EXPECT_EQ(gpu_imports_get(&imports, &ops, &it, &address), 0);
        gpu_imports_put(&imports, &ops, address);
    }
    EXPECT_EQ(most_open, 5); /* four idle mappings and the one that is mapped next */
    EXPECT_EQ(open_count, 4);
    gpu_imports_clear(&imports, &ops);
    EXPECT_EQ(open_count, 0);
}

static void test_failed_mapping_leaves_nothing(void)
{
    struct gpu_imports imports = {0};
    const struct gpu_export a = make_export(1, 1000, 1);
    void *address;
    map_fails = true;
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &a, &address), MPI_ERR_NO_MEM);
    map_fails = false;
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &a, &address), 0);
    gpu_imports_clear(&imports, &ops);
    EXPECT_EQ(open_count, 0);
}

/* A reset of the GPU context removes all mappings. Their addresses may belong to other memory by now, so the
 * cache must not unmap them. */
static void test_reset_context_is_not_unmapped(void)
{
    struct gpu_imports imports = {0};
    const struct gpu_export a = make_export(1, 1000, 1);
    void *address;
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &a, &address), 0);
    gpu_imports_put(&imports, &ops, address);
    context_id++;
    gpu_imports_clear(&imports, &ops);
    EXPECT_EQ(open_count, 1);
    open_count = 0;
    free(address);
}

int main(void)
{
    TEST_RUN(test_mapping_is_reused);
    TEST_RUN(test_freed_memory_is_unmapped);
    TEST_RUN(test_number_of_mappings_is_bounded);
    TEST_RUN(test_bytes_of_idle_mappings_are_bounded);
    TEST_RUN(test_failed_mapping_leaves_nothing);
    TEST_RUN(test_reset_context_is_not_unmapped);
    return test_result();
}
