/* test_chunk.c: encoding of bytes as printable text and decoding: all short lengths, all byte values,
 * refusal of damaged text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "boot/chunk.h"
#include "test.h"

static void test_round_trips(void)
{
    unsigned char data[600];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i * 37);
    for (size_t len = 0; len <= sizeof(data); len++) {
        size_t text_len, again_len, back_len;
        void *back;
        char *text = chunk_encode(data, len, &text_len);
        EXPECT(text && strlen(text) == text_len);
        EXPECT(chunk_text_len(text, &again_len) && again_len == text_len);
        EXPECT(strpbrk(text, " =\n%") == NULL);
        EXPECT(chunk_decode(text, text_len, &back, &back_len));
        EXPECT_EQ(back_len, len);
        EXPECT(memcmp(back, data, len) == 0);
        EXPECT_EQ(((char *)back)[len], 0);
        free(back);
        free(text);
    }
}

static void test_damaged_text_is_refused(void)
{
    static const char *const texts[] = {
        "", ".", "3", "3.", "3.AAA", "3.AAAAA", "3.AA A", "x.AAAA", "4.AAAA", "-1.", "99999999999999999999."};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        void *val;
        size_t len;
        EXPECT(!chunk_decode(texts[i], strlen(texts[i]), &val, &len));
    }
}

static void test_fuzz(void)
{
    srand(1);
    for (int round = 0; round < 100000; round++) {
        char text[24];
        size_t n = (size_t)rand() % sizeof(text), len;
        void *val;
        for (size_t i = 0; i < n; i++)
            text[i] = "0123456789.AZaz-_ "[rand() % 18];
        char exact[sizeof(text) + 1];
        memcpy(exact, text, n);
        exact[n] = '\0';
        if (chunk_decode(exact, n, &val, &len)) {
            EXPECT(len <= n);
            free(val);
        }
    }
}

int main(void)
{
    TEST_RUN(test_round_trips);
    TEST_RUN(test_damaged_text_is_refused);
    TEST_RUN(test_fuzz);
    return test_result();
}
