/* module.c: the module src/gpu on a CUDA driver, softcuda or a real one: kinds of memory, all kinds of
 * copies, memory of another process. The program loads the driver library after gpu_open, as programs do
 * that use CUDA later than MPI.
 *
 *     module              all tests but those below
 *     module late         the driver is loaded after gpu_open
 *     module fails        copies and allocations fail (SOFTCUDA_FAIL is set)
 *     module reset        the program destroys its context
 *     module abi          only the driver's version
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/tunable.h"
#include "gpu/gpu.h"
#include "gpu/imports.h"
#include "program.h"
#include "test.h"

#define SIZE ((size_t)3 << 20)

static void fill_pattern(unsigned char *bytes, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)((i * 31 + seed) ^ (i >> 9));
}

static size_t first_difference(const unsigned char *a, const unsigned char *b, size_t size)
{
    size_t i = 0;
    while (i < size && a[i] == b[i])
        i++;
    return i;
}

static void test_kinds_of_memory(void)
{
    static char of_program[64];
    char of_stack[64];
    char *of_heap = malloc(SIZE), *registered = aligned_alloc(4096, 1 << 20);
    void *mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         *pinned = NULL;
    cuda_pointer managed = 0, pooled = 0, plain = program_alloc(SIZE);
    EXPECT_EQ(cu.alloc_managed(&managed, SIZE, 1), CUDA_OK);
    EXPECT_EQ(cu.alloc_async(&pooled, SIZE, NULL), CUDA_OK);
    EXPECT_EQ(cu.alloc_host(&pinned, SIZE), CUDA_OK);
    EXPECT_EQ(cu.host_register(registered, 1 << 20, 0), CUDA_OK);
    EXPECT_EQ(cu.synchronize(), CUDA_OK);
    for (int turn = 0; turn < 2; turn++) {
        EXPECT(!gpu_memory_is_device(of_program));
        EXPECT(!gpu_memory_is_device(of_stack));
        EXPECT(!gpu_memory_is_device(of_heap + SIZE / 2));
        EXPECT(!gpu_memory_is_device(mapped));
        EXPECT(!gpu_memory_is_device(pinned));
        EXPECT(!gpu_memory_is_device(registered));
        EXPECT(!gpu_memory_is_device(NULL));
        EXPECT_EQ(gpu_classify_address((void *)managed), GPU_MEMORY_MANAGED);
        EXPECT(gpu_memory_is_device((void *)pooled));
        EXPECT(gpu_memory_is_device((void *)plain));
        EXPECT(gpu_memory_is_device((void *)(plain + SIZE - 1)));
    }
    struct gpu_range range, again;
    EXPECT_EQ(gpu_find_range((void *)(plain + 5), &range), 0);
    EXPECT_EQ(range.start, plain);
    EXPECT_EQ(range.size, SIZE);
    EXPECT(range.is_exportable);
    EXPECT_EQ(gpu_find_range((void *)pooled, &again), 0);
    EXPECT(!again.is_exportable);
    EXPECT(again.id != range.id);
    EXPECT(gpu_find_range(of_heap, &range) != 0);
    EXPECT_EQ(gpu_check_buffer((void *)plain, SIZE), 0);
    EXPECT_EQ(gpu_check_buffer((void *)(plain + 1), SIZE), MPI_ERR_BUFFER);
    EXPECT_EQ(gpu_check_buffer(of_heap, SIZE), 0);
    EXPECT_EQ(cu.free(plain), CUDA_OK);
    EXPECT_EQ(cu.free(managed), CUDA_OK);
    EXPECT_EQ(cu.free(pooled), CUDA_OK);
    EXPECT_EQ(cu.free_host(pinned), CUDA_OK);
    EXPECT_EQ(cu.host_unregister(registered), CUDA_OK);
    munmap(mapped, SIZE);
    free(of_heap);
    free(registered);
}

/* Host memory is unmapped, and its addresses become device memory; the test calls the hooks that report
 * the unmapping itself. */
static void test_unmapped_host_memory(void)
{
    char *mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gpu_set_hooks_active();
    EXPECT(!gpu_memory_is_device(mapped));
    EXPECT(!gpu_memory_is_device(mapped));
    gpu_forget_range(NULL, (uintptr_t)mapped, SIZE);
    munmap(mapped, SIZE);
    cuda_pointer plain[64];
    for (int i = 0; i < 64; i++) {
        plain[i] = program_alloc(SIZE);
        EXPECT(gpu_memory_is_device((void *)plain[i]));
    }
    for (int i = 0; i < 64; i++)
        EXPECT_EQ(cu.free(plain[i]), CUDA_OK);
}

static void test_copies(void)
{
    unsigned char *a = malloc(SIZE), *b = calloc(1, SIZE);
    cuda_pointer x = program_alloc(SIZE), y = program_alloc(SIZE);
    fill_pattern(a, SIZE, 1);
    static const size_t sizes[] = {0, 1, 8, 4095, 65536, SIZE};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const size_t n = sizes[i];
        memset(b, 0, SIZE);
        EXPECT_EQ(gpu_copy((void *)x, a, n), 0);
        EXPECT_EQ(gpu_copy((void *)y, (void *)x, n), 0);
        EXPECT_EQ(gpu_copy(b, (void *)y, n), 0);
        EXPECT_EQ(first_difference(a, b, n), n);
    }
    /* Three columns of a matrix with 1000 rows of 64 bytes, copied to contiguous memory and back to
     * another matrix. */
    memset(b, 0, SIZE);
    EXPECT_EQ(gpu_copy((void *)x, a, SIZE), 0);
    EXPECT_EQ(gpu_copy_rows(b, 3, (void *)(x + 5), 64, 3, 1000), 0);
    for (size_t row = 0; row < 1000; row++)
        EXPECT_EQ(first_difference(a + row * 64 + 5, b + row * 3, 3), 3);
    EXPECT_EQ(gpu_copy_rows((void *)(y + 7), 100, b, 3, 3, 1000), 0);
    unsigned char *c = malloc(SIZE);
    EXPECT_EQ(gpu_copy(c, (void *)y, SIZE), 0);
    for (size_t row = 0; row < 1000; row++)
        EXPECT_EQ(first_difference(b + row * 3, c + 7 + row * 100, 3), 3);
    /* Asynchronous copies, several at a time, through pinned buffers. */
    void *staging[4];
    struct gpu_transfer transfer[4];
    for (size_t i = 0; i < 4; i++) {
        staging[i] = gpu_get_staging();
        EXPECT(staging[i] != NULL);
        EXPECT_EQ(
            gpu_start_copy(staging[i], (void *)(x + i * GPU_STAGING_SIZE), GPU_STAGING_SIZE, &transfer[i]),
            0);
    }
    for (size_t i = 0; i < 4; i++) {
        int rc;
        while ((rc = gpu_poll_copy(&transfer[i])) == ERR_AGAIN)
            ;
        EXPECT_EQ(rc, 0);
        EXPECT_EQ(first_difference(staging[i], a + i * GPU_STAGING_SIZE, GPU_STAGING_SIZE), GPU_STAGING_SIZE);
        gpu_put_staging(staging[i]);
    }
    EXPECT_EQ(cu.free(x), CUDA_OK);
    EXPECT_EQ(cu.free(y), CUDA_OK);
    free(a);
    free(b);
    free(c);
}

/* Body of the child: maps each export of the parent and answers with the first and the last byte. */
static int run_importer(int from_parent, int to_parent)
{
    struct gpu_export exported;
    program_load();
    program_start();
    EXPECT_EQ(gpu_open(), 0);
    while (read(from_parent, &exported, sizeof(exported)) == (ssize_t)sizeof(exported)) {
        unsigned char ends[2] = {0, 0};
        void *memory = NULL;
        EXPECT_EQ(gpu_import_range(&exported, &memory), 0);
        if (memory) {
            EXPECT(gpu_memory_is_device(memory));
            EXPECT_EQ(gpu_copy(&ends[0], memory, 1), 0);
            EXPECT_EQ(gpu_copy(&ends[1], (char *)memory + exported.size - 1, 1), 0);
            gpu_release_import(memory);
        }
        if (write(to_parent, ends, sizeof(ends)) != (ssize_t)sizeof(ends))
            break;
    }
    gpu_close();
    return test_result();
}

static void test_memory_of_another_process(int to_child, int from_child)
{
    unsigned char *a = malloc(SIZE);
    for (unsigned turn = 0; turn < 100; turn++) {
        cuda_pointer x = program_alloc(SIZE);
        struct gpu_range range;
        struct gpu_export exported;
        unsigned char ends[2];
        fill_pattern(a, SIZE, turn);
        EXPECT_EQ(gpu_copy((void *)x, a, SIZE), 0);
        EXPECT_EQ(gpu_find_range((void *)x, &range), 0);
        EXPECT_EQ(gpu_export_range(&range, &exported), 0);
        EXPECT_EQ(write(to_child, &exported, sizeof(exported)), sizeof(exported));
        EXPECT_EQ(read(from_child, ends, sizeof(ends)), sizeof(ends));
        EXPECT_EQ(ends[0], a[0]);
        EXPECT_EQ(ends[1], a[SIZE - 1]);
        EXPECT_EQ(cu.free(x), CUDA_OK);
    }
    free(a);
}

static void test_descriptors_for_adapters(void)
{
    cuda_pointer x = program_alloc(SIZE);
    int fd = -1;
    uint64_t offset = 0;
    EXPECT_EQ(gpu_synchronize_copies((void *)x), 0);
    const int rc = gpu_open_dmabuf((void *)(x + 4100), 10000, &fd, &offset);
    EXPECT(rc == 0 || rc == ERR_AGAIN);
    if (rc == 0) {
        EXPECT_EQ(offset, 4);
        EXPECT(fd >= 0);
        close(fd);
    }
    EXPECT_EQ(cu.free(x), CUDA_OK);
}

static void test_failures_are_errors(void)
{
    cuda_pointer x = program_alloc(SIZE);
    char byte = 0;
    EXPECT(gpu_copy(&byte, (void *)x, 1) != 0);
    EXPECT(gpu_copy_rows(&byte, 1, (void *)x, 1, 1, 1) != 0);
    struct gpu_range range;
    struct gpu_export exported;
    int fd;
    uint64_t offset;
    EXPECT_EQ(gpu_find_range((void *)x, &range), 0);
    EXPECT_EQ(gpu_export_range(&range, &exported), ERR_AGAIN);
    EXPECT_EQ(gpu_open_dmabuf((void *)x, 1, &fd, &offset), ERR_AGAIN);
    void *staging = gpu_get_staging(); /* not pinned, as the allocation fails, but usable */
    EXPECT(staging != NULL);
    memset(staging, 1, GPU_STAGING_SIZE);
    gpu_put_staging(staging);
    EXPECT_EQ(cu.free(x), CUDA_OK);
}

/* The program reuses addresses of library memory that was freed with its context. */
static void test_destroyed_context(void)
{
    enum { ALLOCATIONS = 64 };
    const cuda_pointer near = program_alloc(SIZE);
    void *staging = gpu_get_staging(), *temporary = gpu_get_temporary(SIZE, (void *)near);
    void *pinned[ALLOCATIONS];
    cuda_pointer device[ALLOCATIONS];
    int again = 0;
    EXPECT(staging && temporary);
    gpu_put_staging(staging);
    gpu_put_temporary(temporary);
    EXPECT_EQ(cu.reset(0), CUDA_OK);
    program_start();
    for (int i = 0; i < ALLOCATIONS; i++) {
        EXPECT_EQ(cu.alloc_host(&pinned[i], GPU_STAGING_SIZE), CUDA_OK);
        device[i] = program_alloc(SIZE);
        again += pinned[i] == staging || (void *)device[i] == temporary;
    }
    gpu_close();
    for (int i = 0; i < ALLOCATIONS; i++) {
        EXPECT_EQ(cu.free_host(pinned[i]), CUDA_OK);
        EXPECT_EQ(cu.free(device[i]), CUDA_OK);
    }
    printf("%d addresses were reused\n", again);
}

/* The library continues with new buffers after the program has reset its context. */
static void test_copies_after_reset(void)
{
    static char bytes[100000], back[sizeof(bytes)];
    for (int turn = 0; turn < 3; turn++) {
        const cuda_pointer x = program_alloc(sizeof(bytes));
        void *staging = gpu_get_staging(), *temporary = gpu_get_temporary(SIZE, (void *)x);
        EXPECT(staging && temporary && gpu_is_accessible(staging) && gpu_is_accessible(temporary));
        fill_pattern((unsigned char *)bytes, sizeof(bytes), (unsigned)turn);
        memcpy(staging, bytes, sizeof(bytes));
        EXPECT_EQ(gpu_copy((void *)x, staging, sizeof(bytes)), 0);
        EXPECT_EQ(gpu_copy(temporary, (void *)x, sizeof(bytes)), 0);
        EXPECT_EQ(gpu_copy(back, temporary, sizeof(bytes)), 0);
        EXPECT(memcmp(bytes, back, sizeof(bytes)) == 0);
        EXPECT_EQ(gpu_reduce("bxor_U8", (void *)x, temporary, (void *)x, sizeof(bytes), 1), 0);
        EXPECT_EQ(gpu_copy(back, (void *)x, sizeof(bytes)), 0);
        EXPECT(back[0] == 0 && memcmp(back, back + 1, sizeof(back) - 1) == 0);
        gpu_put_temporary(temporary);
        gpu_put_staging(staging);
        EXPECT_EQ(cu.reset(0), CUDA_OK);
        program_start();
    }
}

/* Buffers of a burst of messages are freed, down to a limit. */
static void test_idle_buffers_are_bounded(void)
{
    enum { BUFFERS = 1000, KEPT = 512 };
    void *buffers[BUFFERS];
    int pinned = 0;
    for (int i = 0; i < BUFFERS; i++)
        EXPECT((buffers[i] = gpu_get_staging()) != NULL);
    for (int i = 0; i < BUFFERS; i++)
        gpu_put_staging(buffers[i]);
    for (int i = 0; i < BUFFERS; i++)
        pinned += gpu_is_accessible(buffers[i]);
    EXPECT(pinned > 0 && pinned <= KEPT);
    /* The buffer that was used last is retained, although it is large. */
    void *large = gpu_get_buffer((size_t)64 << 20);
    gpu_put_buffer(large, (size_t)64 << 20);
    EXPECT(gpu_is_accessible(large));
}

/* ---- the cache of imports, with a GPU library that maps a new address in each call ---- */

static unsigned maps, unmaps;

static int fake_map(const struct gpu_export *exported, void **out)
{
    (void)exported;
    *out = (void *)((uintptr_t)++maps << 32);
    return 0;
}

static void fake_unmap(const struct gpu_export *exported, void *address)
{
    (void)exported, (void)address;
    unmaps++;
}

static bool fake_find(uintptr_t address, struct gpu_range *out)
{
    *out = (struct gpu_range){.start = address, .size = 1, .id = address};
    return true;
}

/* A process ends, and a later one with the same pid exports memory with the same id and address. */
static void test_reused_pid(void)
{
    static const struct gpu_ops ops = {
        .map_export = fake_map, .unmap_export = fake_unmap, .find_range = fake_find};
    struct gpu_imports imports = {0};
    struct gpu_export first = {.pid = 100, .opened = 1, .id = 5, .start = 4096, .size = 4096}, second = first;
    void *a, *b, *c;
    second.opened = 2;
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &first, &a), 0);
    gpu_imports_put(&imports, &ops, a);
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &first, &b), 0);
    EXPECT(a == b);
    gpu_imports_put(&imports, &ops, b);
    EXPECT_EQ(gpu_imports_get(&imports, &ops, &second, &c), 0);
    EXPECT(a != c);
    EXPECT_EQ(maps, 2);
    EXPECT_EQ(unmaps, 1); /* the mapping of the first process was removed */
    gpu_imports_put(&imports, &ops, c);
    gpu_imports_clear(&imports, &ops);
    EXPECT_EQ(unmaps, 2);
}

static void test_device_descriptions(void)
{
    struct gpu_device *devices;
    size_t count;
    int driver;
    const char *why;
    EXPECT_EQ(gpu_list_devices(&devices, &count, &driver, &why), 0);
    EXPECT(count >= 1 && driver > 0);
    char current[16] = "";
    EXPECT(gpu_find_current(current));
    EXPECT_STR(current, devices[0].pci);
    printf("%s, %s, %llu MiB, driver %d, dma-buf %d\n", devices[0].name, devices[0].pci,
           (unsigned long long)devices[0].bytes >> 20, driver, devices[0].has_dmabuf);
    free(devices);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int down[2], up[2];
    tunables_load();
    if (strcmp(what, "late") == 0) {
        EXPECT_EQ(gpu_open(), 0);
        EXPECT(!gpu_is_active());
        EXPECT(!gpu_memory_is_device(what));
        program_load();
    } else if (strcmp(what, "off") == 0) { /* FISHPLATE_GPU=off */
        program_load();
        EXPECT_EQ(gpu_open(), 0);
        program_start();
        cuda_pointer x = program_alloc(SIZE);
        EXPECT(!gpu_memory_is_device((void *)x));
        EXPECT_STR(gpu_reason_inactive(), "FISHPLATE_GPU=off");
        return test_result();
    } else if (strcmp(what, "required") == 0) { /* FISHPLATE_GPU=cuda without a GPU */
        EXPECT_EQ(gpu_open(), MPI_ERR_OTHER);
        printf("%s\n", err_detail(MPI_ERR_OTHER));
        return test_result();
    }
    /* The child is forked before CUDA is initialised, since a process that uses CUDA cannot fork. */
    if (pipe(down) || pipe(up))
        return 1;
    const pid_t child = fork();
    if (child == 0) {
        close(down[1]);
        close(up[0]);
        _exit(run_importer(down[0], up[1]));
    }
    close(down[0]);
    close(up[1]);
    if (strcmp(what, "late") != 0) {
        program_load();
        EXPECT_EQ(gpu_open(), 0);
    }
    program_start();
    if (strcmp(what, "fails") == 0) {
        TEST_RUN(test_failures_are_errors);
    } else if (strcmp(what, "reset") == 0) {
        TEST_RUN(test_copies_after_reset);
        TEST_RUN(test_destroyed_context);
    } else {
        TEST_RUN(test_kinds_of_memory);
        TEST_RUN(test_copies);
        TEST_RUN(test_idle_buffers_are_bounded);
        TEST_RUN(test_reused_pid);
        TEST_RUN(test_descriptors_for_adapters);
        test_memory_of_another_process(down[1], up[0]);
        TEST_RUN(test_unmapped_host_memory);
        EXPECT(gpu_is_active());
        test_device_descriptions();
    }
    close(down[1]);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    gpu_close();
    cu.release(0);
    return test_result();
}
