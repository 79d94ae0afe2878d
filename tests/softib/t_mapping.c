/* t_mapping.c: the two methods to find the mapping of an address give the same answer: the kernel's query,
 * if available, and reading the text of all mappings.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory/mapping.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (1u << 20)

static int failures;
static const char constant[] = "cannot be written to";
static char variable[100];

static void compare_methods(const char *what, const void *p, uint64_t len, bool expected, enum kind kind)
{
    struct mapping a = {0}, b = {0};
    int queried = mapping_query((uintptr_t)p, len, &a);
    bool read = mapping_read((uintptr_t)p, len, &b);
    bool same = !expected || queried < 0 ||
                (a.start == b.start && a.end == b.end && a.offset == b.offset && a.ino == b.ino &&
                 a.dev == b.dev && a.kind == b.kind);
    bool ok =
        read == expected && (queried < 0 || queried == expected) && same && (!expected || b.kind == kind);
    if (!ok)
        printf("%s: queried %d (kind %d), read %d (kind %d), expected %d (kind %d)\n", what, queried, a.kind,
               read, b.kind, expected, kind);
    failures += !ok;
}

int main(void)
{
    char stack[100], *heap = malloc(100);
    int fd = memfd_create("mapping", MFD_CLOEXEC);
    if (!heap || fd < 0 || ftruncate(fd, BYTES)) {
        perror("t_mapping");
        return 1;
    }
    char *anon = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *file = mmap(NULL, BYTES / 2, PROT_READ | PROT_WRITE, MAP_SHARED, fd, BYTES / 2);
    char *copy = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *hole = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (anon == MAP_FAILED || file == MAP_FAILED || copy == MAP_FAILED || hole == MAP_FAILED ||
        munmap(hole + BYTES / 2, 4096) || mprotect(anon, 4096, PROT_READ)) {
        perror("t_mapping");
        return 1;
    }
    compare_methods("anonymous", anon + 4096, BYTES - 4096, true, MAP_PRIVATE_ANON);
    compare_methods("two mappings", anon, BYTES, false, MAP_OTHER);
    compare_methods("a hole", hole, BYTES, false, MAP_OTHER);
    compare_methods("in a hole", hole + BYTES / 2, 100, false, MAP_OTHER);
    compare_methods("after a hole", hole + BYTES / 2 + 4096, 100, true, MAP_PRIVATE_ANON);
    compare_methods("a shared file", file + 10, BYTES / 2 - 10, true, MAP_SHARED_FILE);
    compare_methods("a private file", copy, BYTES, true, MAP_OTHER);
    compare_methods("the heap", heap, 100, true, MAP_PRIVATE_ANON);
    compare_methods("the stack", stack, sizeof(stack), true, MAP_OTHER);
    compare_methods("a constant", constant, sizeof(constant), false, MAP_OTHER);
    variable[0] = 1;
    compare_methods("nothing", (void *)64, 10, false, MAP_OTHER);
    free(heap);
    return failures != 0;
}
