/* test_jump.c: the instruction bytes of the jumps that patch libc functions, for every supported processor
 * on any processor; and the memory ranges that each system call removes. The expected bytes were verified
 * with a disassembler.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "base/util.h"
#include "net/memhook/jump.h"
#include "net/memhook/taken.h"
#include "test.h"

static uint8_t code[JUMP_LOOK];

static void replace_code(const char *bytes, size_t length)
{
    memset(code, 0x90, sizeof(code));
    memcpy(code, bytes, length);
}
#define CODE(text) replace_code(text, sizeof(text) - 1)

static void expect_bytes(const struct jump *j, size_t skip, const char *bytes, size_t length)
{
    EXPECT_EQ(j->skip, skip);
    EXPECT_EQ(j->length, length);
    EXPECT_EQ(memcmp(j->bytes, bytes, length), 0);
}
#define EXPECT_BYTES(j, skip, text) expect_bytes(j, skip, text, sizeof(text) - 1)

static void test_aarch64(void)
{
    const struct jump_code *c = jump_find("aarch64");
    CODE("\x1f\x20\x03\xd5\xe8\x1a\x80\xd2"); /* nop; mov x8, #215 */
    struct jump j = c->to_island(code, 0x400000, 0x400100);
    EXPECT_BYTES(&j, 0, "\x40\x00\x00\x14"); /* b +0x100 */
    j = c->to_island(code, 0x400000, 0x3ffff0);
    EXPECT_BYTES(&j, 0, "\xfc\xff\xff\x17");  /* b -16 */
    CODE("\x5f\x24\x03\xd5\xe8\x1a\x80\xd2"); /* bti c; mov x8, #215 */
    j = c->to_island(code, 0x400000, 0x400104);
    EXPECT_BYTES(&j, 4, "\x40\x00\x00\x14");
    CODE("\x3f\x23\x03\xd5\xfd\x7b\xbf\xa9"); /* paciasp; stp x29, x30, [sp, #-16]! */
    j = c->to_island(code, 0x400000, 0x400104);
    EXPECT_BYTES(&j, 0, "\x5f\x24\x03\xd5\x40\x00\x00\x14"); /* bti c; b +0x100 */

    uint8_t island[16];
    c->island(island, 0x1122334455667788);
    EXPECT_EQ(memcmp(island, "\x51\x00\x00\x58\x20\x02\x1f\xd6\x88\x77\x66\x55\x44\x33\x22\x11", 16), 0);
    memcpy(code, island, 16);
    EXPECT_EQ(c->follow(code, 0x400000), 0x1122334455667788);
}

static void test_aarch64_follow(void)
{
    const struct jump_code *c = jump_find("aarch64");
    CODE("\x1f\x20\x03\xd5\xe8\x1a\x80\xd2\x01\x00\x00\xd4"); /* nop; mov x8, #215; svc #0 */
    EXPECT_EQ(c->follow(code, 0x400000), 0);
    CODE("\xfc\xff\xff\x17");
    EXPECT_EQ(c->follow(code, 0x400000), 0x3ffff0);
    CODE("\x5f\x24\x03\xd5\x40\x00\x00\x14");
    EXPECT_EQ(c->follow(code, 0x400000), 0x400104);
    /* movz x15, #0x1122, lsl #48; movk #0x3344, lsl #32; movk #0x5566, lsl #16; movk #0x7788; br x15 */
    CODE("\x4f\x24\xe2\xd2\x8f\x68\xc6\xf2\xcf\xac\xaa\xf2\x0f\xf1\x8e\xf2\xe0\x01\x1f\xd6");
    EXPECT_EQ(c->follow(code, 0x400000), 0x1122334455667788);
    code[16] = 0x00; /* br x8: another register */
    EXPECT_EQ(c->follow(code, 0x400000), 0);
}

static void test_x86_64(void)
{
    const struct jump_code *c = jump_find("x86_64");
    CODE("\xb8\x0b\x00\x00\x00\x0f\x05"); /* mov $11, %eax; syscall */
    struct jump j = c->to_island(code, 0x400000, 0x400100);
    EXPECT_BYTES(&j, 0, "\xe9\xfb\x00\x00\x00");
    j = c->to_island(code, 0x400000, 0x3ffff0);
    EXPECT_BYTES(&j, 0, "\xe9\xeb\xff\xff\xff");
    CODE("\xf3\x0f\x1e\xfa\xb8\x0b\x00\x00\x00\x0f\x05"); /* endbr64 first */
    j = c->to_island(code, 0x400000, 0x400100);
    EXPECT_BYTES(&j, 4, "\xe9\xf7\x00\x00\x00");

    uint8_t island[16];
    c->island(island, 0x1122334455667788);
    EXPECT_EQ(memcmp(island, "\xff\x25\x00\x00\x00\x00\x88\x77\x66\x55\x44\x33\x22\x11\xcc\xcc", 16), 0);
    memcpy(code, island, 16);
    EXPECT_EQ(c->follow(code, 0x400000), 0x1122334455667788);
}

static void test_x86_64_follow(void)
{
    const struct jump_code *c = jump_find("x86_64");
    CODE("\xf3\x0f\x1e\xfa\xb8\x0b\x00\x00\x00\x0f\x05");
    EXPECT_EQ(c->follow(code, 0x400000), 0);
    CODE("\xf3\x0f\x1e\xfa\xe9\xf7\x00\x00\x00");
    EXPECT_EQ(c->follow(code, 0x400000), 0x400100);
    CODE("\xe9\xeb\xff\xff\xff");
    EXPECT_EQ(c->follow(code, 0x400000), 0x3ffff0);
    CODE("\x49\xbb\x88\x77\x66\x55\x44\x33\x22\x11\x41\xff\xe3"); /* movabs $x, %r11; jmp *%r11 */
    EXPECT_EQ(c->follow(code, 0x400000), 0x1122334455667788);
    CODE("\x48\xb8\x88\x77\x66\x55\x44\x33\x22\x11\xff\xe0"); /* movabs $x, %rax; jmp *%rax */
    EXPECT_EQ(c->follow(code, 0x400000), 0x1122334455667788);
    CODE("\x48\xb8\x88\x77\x66\x55\x44\x33\x22\x11\xff\xe1"); /* jmp *%rcx */
    EXPECT_EQ(c->follow(code, 0x400000), 0);
}

static void test_unknown_processor(void)
{
    EXPECT(jump_find("generic") == NULL);
}

enum { PAGE = 4096, HEAP_END = 100 * PAGE };

/* Compares the memory ranges that a system call removes with `wanted`: "none", or start+length in pages. */
static void expect_removed_ranges(long number, const long *a, const char *wanted)
{
    struct syscall_args call = {number, {a[0], a[1], a[2], a[3], a[4], a[5]}};
    struct span s[2];
    char found[80] = "none", *p = found;
    int n = syscall_released_spans(&call, HEAP_END, PAGE, s);
    for (int i = 0; i < n; i++) {
        if (s[i].length == SIZE_MAX)
            p += sprintf(p, "%severything", i ? " " : "");
        else
            p += sprintf(p, "%s%zu+%zu", i ? " " : "", (size_t)s[i].start / PAGE, s[i].length / PAGE);
        EXPECT(s[i].length == SIZE_MAX || (s[i].start % PAGE == 0 && s[i].length % PAGE == 0));
    }
    EXPECT_STR(found, wanted);
}
#define REMOVED(wanted, number, ...) expect_removed_ranges(number, (long[6]){__VA_ARGS__}, wanted)

static void test_removed_ranges(void)
{
    REMOVED("10+3", SYS_munmap, 10 * PAGE, 2 * PAGE + 1);
    REMOVED("everything", SYS_munmap, 10 * PAGE, -1);
    REMOVED("none", SYS_mmap, 10 * PAGE, PAGE, PROT_READ, MAP_PRIVATE);
    REMOVED("10+1", SYS_mmap, 10 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED);
    REMOVED("none", SYS_mmap, 10 * PAGE, PAGE, PROT_READ, MAP_FIXED | 0x100000 /* NOREPLACE */);
    REMOVED("10+1", SYS_madvise, 10 * PAGE, PAGE, MADV_DONTNEED);
    REMOVED("10+1", SYS_madvise, 10 * PAGE, PAGE, MADV_FREE);
    REMOVED("10+1", SYS_madvise, 10 * PAGE, PAGE, MADV_REMOVE);
    REMOVED("none", SYS_madvise, 10 * PAGE, PAGE, MADV_DONTFORK);
    REMOVED("none", SYS_madvise, 10 * PAGE, PAGE, MADV_HUGEPAGE);
    REMOVED("10+1", SYS_mprotect, 10 * PAGE, PAGE, PROT_READ | PROT_WRITE);
    REMOVED("none", SYS_mprotect, 10 * PAGE, PAGE, PROT_READ);
    REMOVED("12+2", SYS_mremap, 10 * PAGE, 4 * PAGE, PAGE + 1, MREMAP_MAYMOVE); /* shrinks in place */
    REMOVED("none", SYS_mremap, 10 * PAGE, 4 * PAGE, 4 * PAGE - 1, 0);
    REMOVED("none", SYS_mremap, 10 * PAGE, 4 * PAGE, 8 * PAGE, 0);
    REMOVED("10+4", SYS_mremap, 10 * PAGE, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    REMOVED("10+4 50+2", SYS_mremap, 10 * PAGE, 4 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, 50 * PAGE);
    REMOVED("10+4", SYS_mremap, 10 * PAGE, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | 4 /* DONTUNMAP */);
    REMOVED("none", SYS_brk, 0);
    REMOVED("none", SYS_brk, HEAP_END + 1);
    REMOVED("none", SYS_brk, HEAP_END - 1); /* the last page remains mapped */
    REMOVED("90+10", SYS_brk, 90 * PAGE);
    REMOVED("91+9", SYS_brk, 90 * PAGE + 1);
    REMOVED("everything", SYS_shmdt, 10 * PAGE);
    REMOVED("none", SYS_shmat, 1, 10 * PAGE, 0);
    REMOVED("everything", SYS_shmat, 1, 10 * PAGE, SHM_REMAP);
    REMOVED("10+1", SYS_remap_file_pages, 10 * PAGE, PAGE);
    REMOVED("none", SYS_getpid, 10 * PAGE, PAGE);
}

int main(void)
{
    TEST_RUN(test_aarch64);
    TEST_RUN(test_aarch64_follow);
    TEST_RUN(test_x86_64);
    TEST_RUN(test_x86_64_follow);
    TEST_RUN(test_unknown_processor);
    TEST_RUN(test_removed_ranges);
    return test_result();
}
