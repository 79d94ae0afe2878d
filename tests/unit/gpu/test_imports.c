/* test_imports.c: mappings of other processes' GPU memory are cached, bounded, closed when their owner has freed the memory, and
 * never closed while they are in use.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/imports.h"

#include <stdlib.h>

#include "base/err.h"
#include "test.h"

static int open_count, most_open;
static bool map_fails;

static int imports_map(const struct gpu_export *exported, void **out)
{
    if (map_fails)
        return err_set(MPI_ERR_NO_MEM, "no address space");
    open_count++;
    most_open = open_count > most_open ? open_count : most_open;
    *out = malloc(1);
    (void)exported;
    return 0;
}

static void imports_unmap(const struct gpu_export *exported, void *address)
{
    (void)exported;
    open_count--;
    free(address);
}

static const struct gpu_ops ops = {.map_export = imports_map, .unmap_export = imports_unmap};

static struct gpu_export imports_exported(int pid, uint64_t start, uint64_t id)
{
    return (struct gpu_export){.pid = pid, .start = start, .size = 100, .id = id};
}

static void uses_a_mapping_again(void)
{
    struct gpu_imports imports = {0};
    const struct gpu_export a = imports_exported(1, 1000, 1);
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

/* 10,000 allocations at the same few addresses, as programs do that allocate in a loop: each free is noticed by the next export. */
static void closes_what_the_owner_has_freed(void)
{
    struct gpu_imports imports = {0};
    most_open = 0;
    for (uint64_t id = 1; id <= 10000; id++) {
        const struct gpu_export it = imports_exported(1, 1000 + id % 4 * 50, id);
        void *address;
        EXPECT_EQ(gpu_imports_get(&imports, &ops, &it, &address), 0);
        gpu_imports_put(&imports, &ops, address);
    }
    EXPECT(most_open <= 2);
    gpu_imports_clear(&imports, &ops);
    EXPECT_EQ(open_count, 0);
}

static void is_bounded(void)
{
    struct gpu_imports imports = {0};
    void *address[GPU_IMPORTS_MOST], *one;
    most_open = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        const struct gpu_export it = imports_exported(1, 1000 * i, i);
        EXPECT_EQ(gpu_imports_get(&imports, &ops, &it, &one), 0);
        gpu_imports_put(&imports, &ops, one);
    }
    EXPECT_EQ(most_open, GPU_IMPORTS_MOST);
    for (uint64_t i = 0; i < GPU_IMPORTS_MOST; i++) { /* all in use: no further one, and none is closed */
        const struct gpu_export it = imports_exported(2, 1000 * i, i);
        EXPECT_EQ(gpu_imports_get(&imports, &ops, &it, &address[i]), 0);
    }
    const struct gpu_export more = imports_exported(3, 0, 1), outdates = imports_exported(2, 10, 99);
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &more, &one), ERR_AGAIN);
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &outdates, &one), ERR_AGAIN);
    EXPECT_EQ(open_count, GPU_IMPORTS_MOST);
    gpu_imports_put(&imports, &ops, address[7]);
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &more, &one), 0);
    gpu_imports_clear(&imports, &ops);
    EXPECT_EQ(open_count, 0);
}

/* GPU_IMPORT_BYTES is 4 GiB: mappings keep memory of the GPU allocated. */
static void bounds_the_bytes_of_idle_mappings(void)
{
    struct gpu_imports imports = {0};
    most_open = 0;
    for (uint64_t i = 0; i < 10; i++) {
        struct gpu_export it = imports_exported(1, i << 30, i);
        void *address;
        it.size = (uint64_t)1 << 30;
        EXPECT_EQ(gpu_imports_get(&imports, &ops, &it, &address), 0);
        gpu_imports_put(&imports, &ops, address);
    }
    EXPECT_EQ(most_open, 5); /* four idle ones and the one that is mapped next */
    EXPECT_EQ(open_count, 4);
    gpu_imports_clear(&imports, &ops);
    EXPECT_EQ(open_count, 0);
}

static void a_failed_mapping_leaves_nothing(void)
{
    struct gpu_imports imports = {0};
    const struct gpu_export a = imports_exported(1, 1000, 1);
    void *address;
    map_fails = true;
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &a, &address), MPI_ERR_NO_MEM);
    map_fails = false;
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &a, &address), 0);
    gpu_imports_clear(&imports, &ops);
    EXPECT_EQ(open_count, 0);
}

int main(void)
{
    TEST_RUN(uses_a_mapping_again);
    TEST_RUN(closes_what_the_owner_has_freed);
    TEST_RUN(is_bounded);
    TEST_RUN(bounds_the_bytes_of_idle_mappings);
    TEST_RUN(a_failed_mapping_leaves_nothing);
    return test_result();
}
