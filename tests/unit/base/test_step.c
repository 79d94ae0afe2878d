/* test_step.c: decodes how many bytes a store instruction writes, for the instructions that compilers and
 * memcpy use.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/single_step.h"

#include "test.h"

#if STEP_POSSIBLE
static size_t decode_store_size(const char *code)
{
    unsigned char bytes[16] = {0};
    strncpy((char *)bytes, code, sizeof(bytes) - 1);
    return step_store_size(bytes);
}

static void test_general_registers(void)
{
    EXPECT_EQ(decode_store_size("\x88\x07"), 1);             /* mov %al,(%rdi) */
    EXPECT_EQ(decode_store_size("\x66\x89\x07"), 2);         /* mov %ax,(%rdi) */
    EXPECT_EQ(decode_store_size("\x89\x07"), 4);             /* mov %eax,(%rdi) */
    EXPECT_EQ(decode_store_size("\x48\x89\x07"), 8);         /* mov %rax,(%rdi) */
    EXPECT_EQ(decode_store_size("\x44\x89\x07"), 4);         /* mov %r8d,(%rdi) */
    EXPECT_EQ(decode_store_size("\xc6\x07\x01"), 1);         /* movb $1,(%rdi) */
    EXPECT_EQ(decode_store_size("\x48\xc7\x07\x01"), 8);     /* movq $1,(%rdi) */
    EXPECT_EQ(decode_store_size("\x83\x07\x01"), 4);         /* addl $1,(%rdi) */
    EXPECT_EQ(decode_store_size("\xf0\x48\x01\x07"), 8);     /* lock add %rax,(%rdi) */
    EXPECT_EQ(decode_store_size("\xf0\x48\x0f\xb1\x17"), 8); /* lock cmpxchg %rdx,(%rdi) */
    EXPECT_EQ(decode_store_size("\xf0\x0f\xc1\x07"), 4);     /* lock xadd %eax,(%rdi) */
    EXPECT_EQ(decode_store_size("\x48\x0f\xc3\x07"), 8);     /* movnti %rax,(%rdi) */
    EXPECT_EQ(decode_store_size("\xff\x07"), 4);             /* incl (%rdi) */
    EXPECT_EQ(decode_store_size("\x0f\x94\x07"), 1);         /* sete (%rdi) */
}

static void test_vector_registers(void)
{
    EXPECT_EQ(decode_store_size("\xf3\x0f\x11\x07"), 4);          /* movss %xmm0,(%rdi) */
    EXPECT_EQ(decode_store_size("\xf2\x0f\x11\x07"), 8);          /* movsd %xmm0,(%rdi) */
    EXPECT_EQ(decode_store_size("\x0f\x11\x07"), 16);             /* movups %xmm0,(%rdi) */
    EXPECT_EQ(decode_store_size("\x44\x0f\x29\x07"), 16);         /* movaps %xmm8,(%rdi) */
    EXPECT_EQ(decode_store_size("\x66\x0f\xd6\x07"), 8);          /* movq %xmm0,(%rdi) */
    EXPECT_EQ(decode_store_size("\x66\x0f\x7e\x07"), 4);          /* movd %xmm0,(%rdi) */
    EXPECT_EQ(decode_store_size("\xf3\x0f\x7f\x07"), 16);         /* movdqu %xmm0,(%rdi) */
    EXPECT_EQ(decode_store_size("\xc5\xfe\x7f\x07"), 32);         /* vmovdqu %ymm0,(%rdi) */
    EXPECT_EQ(decode_store_size("\xc5\xfa\x7f\x07"), 16);         /* vmovdqu %xmm0,(%rdi) */
    EXPECT_EQ(decode_store_size("\xc5\xfb\x11\x07"), 8);          /* vmovsd %xmm0,(%rdi) */
    EXPECT_EQ(decode_store_size("\xc4\x41\x7c\x11\x00"), 32);     /* vmovups %ymm8,(%r8) */
    EXPECT_EQ(decode_store_size("\x62\xf1\xfe\x48\x7f\x07"), 64); /* vmovdqu64 %zmm0,(%rdi) */
    EXPECT_EQ(decode_store_size("\x62\xf1\xfe\x49\x7f\x07"), 1);  /* with a mask: only 1 byte is certain */
}

/* Simulates `rep movsb` with overlapping source and destination: two elements in the first call, the last one
 * in the second call. */
static void test_block_stores(void)
{
    static const unsigned char code[] = {0xf3, 0xa4}; /* rep movsb */
    char text[] = "abcdef";
    ucontext_t u = {0};
    uintptr_t to;
    size_t bytes;
    greg_t *r = u.uc_mcontext.gregs;
    r[REG_RIP] = (greg_t)(uintptr_t)code;
    r[REG_RSI] = (greg_t)(uintptr_t)text;
    r[REG_RDI] = (greg_t)(uintptr_t)(text + 1);
    r[REG_RCX] = 3;
    EXPECT(step_get_block_store(&u, &to, &bytes));
    EXPECT_EQ(bytes, 3);
    EXPECT_EQ(step_execute_block_store(&u, 2), 2);
    EXPECT(strcmp(text, "aaadef") == 0);
    EXPECT(step_instruction_address(&u) == (uintptr_t)code);
    EXPECT_EQ(step_execute_block_store(&u, 1), 1);
    EXPECT(strcmp(text, "aaaaef") == 0);
    EXPECT(step_instruction_address(&u) == (uintptr_t)code + 2);
    r[REG_RIP] = (greg_t)(uintptr_t) "\x89\x07";
    EXPECT(!step_get_block_store(&u, &to, &bytes));
}

int main(void)
{
    TEST_RUN(test_general_registers);
    TEST_RUN(test_vector_registers);
    TEST_RUN(test_block_stores);
    return test_result();
}
#else
int main(void)
{
    return 77;
}
#endif
