/* t_mapping.c: both methods to find the mapping that holds some memory give the same answer: a query for one, where the kernel has it,
 * and reading the text of all.
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

static void mapping_run_both(const char *what, const void *p, uint64_t len, bool there, enum kind kind)
{
    struct mapping a = {0}, b = {0};
    int queried = mapping_query((uintptr_t)p, len, &a);
    bool read = mapping_read((uintptr_t)p, len, &b);
    bool same = !there || queried < 0 ||
                (a.start == b.start && a.end == b.end && a.offset == b.offset && a.ino == b.ino &&
                 a.dev == b.dev && a.kind == b.kind);
    bool ok = read == there && (queried < 0 || queried == there) && same && (!there || b.kind == kind);
    if (!ok)
        printf("%s: queried %d (kind %d), read %d (kind %d), expected %d (kind %d)\n", what, queried, a.kind,
               read, b.kind, there, kind);
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
    mapping_run_both("anonymous", anon + 4096, BYTES - 4096, true, MAP_PRIVATE_ANON);
    mapping_run_both("two mappings", anon, BYTES, false, MAP_OTHER);
    mapping_run_both("a hole", hole, BYTES, false, MAP_OTHER);
    mapping_run_both("in a hole", hole + BYTES / 2, 100, false, MAP_OTHER);
    mapping_run_both("after a hole", hole + BYTES / 2 + 4096, 100, true, MAP_PRIVATE_ANON);
    mapping_run_both("a shared file", file + 10, BYTES / 2 - 10, true, MAP_SHARED_FILE);
    mapping_run_both("a private file", copy, BYTES, true, MAP_OTHER);
    mapping_run_both("the heap", heap, 100, true, MAP_PRIVATE_ANON);
    mapping_run_both("the stack", stack, sizeof(stack), true, MAP_OTHER);
    mapping_run_both("a constant", constant, sizeof(constant), false, MAP_OTHER);
    variable[0] = 1;
    mapping_run_both("nothing", (void *)64, 10, false, MAP_OTHER);
    free(heap);
    return failures != 0;
}
