/* test_pmi_line.c: the parser of PMI-1 lines: valid lines, refused lines, and random bytes, which must not
 * crash it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "boot/pmi_line.h"
#include "test.h"

static void test_words(void)
{
    char text[] = "  cmd=put\tkey=a value=b=c=  free text empty= ";
    struct pmi_line line;
    EXPECT(pmi_line_parse(text, &line));
    EXPECT_EQ(line.n, 4);
    EXPECT_STR(pmi_line_get(&line, "cmd"), "put");
    EXPECT_STR(pmi_line_get(&line, "value"), "b=c=");
    EXPECT_STR(pmi_line_get(&line, "empty"), "");
    EXPECT(pmi_line_get(&line, "free") == NULL);
}

static void test_invalid_lines_are_refused(void)
{
    char no_key[] = "cmd=x =y", control[] = "cmd=x\x01", many[512] = "";
    struct pmi_line line;
    EXPECT(!pmi_line_parse(no_key, &line));
    EXPECT(!pmi_line_parse(control, &line));
    for (int i = 0; i < PMI_WORDS_MAX + 1; i++)
        strcat(many, "a=b ");
    EXPECT(!pmi_line_parse(many, &line));
}

static void test_numbers(void)
{
    static const struct {
        const char *text;
        bool ok;
        long value;
    } cases[] = {{"0", true, 0},
                 {"-1", true, -1},
                 {"100", true, 100},
                 {"101", false, 0},
                 {"-2", false, 0},
                 {"", false, 0},
                 {"x", false, 0},
                 {"1x", false, 0},
                 {"+1", false, 0},
                 {" 1", false, 0},
                 {"1.5", false, 0},
                 {"--1", false, 0},
                 {"99999999999999999999", false, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pmi_line line = {.n = 1, .word[0] = {"n", cases[i].text}};
        long v = 77;
        EXPECT_EQ(pmi_line_int(&line, "n", -1, 100, &v), cases[i].ok);
        EXPECT_EQ(v, cases[i].ok ? cases[i].value : 77);
    }
}

static void test_escapes(void)
{
    static const char text[] = "50% of a=b, \"quoted\"\nsecond line";
    char word[256], small[8];
    pmi_escape(text, word, sizeof(word));
    EXPECT(strpbrk(word, " \n=\t") == NULL);
    pmi_unescape(word);
    EXPECT_STR(word, text);
    pmi_escape("abc def ghi", small, sizeof(small));
    EXPECT_STR(small, "abc%20d");
    char bad[] = "%zz%4%1b%";
    pmi_unescape(bad);
    EXPECT_STR(bad, "%zz%4?%");
}

static void test_fuzz(void)
{
    srand(5);
    for (int round = 0; round < 200000; round++) {
        char text[96];
        size_t len = (size_t)rand() % (sizeof(text) - 1);
        for (size_t i = 0; i < len; i++)
            text[i] = rand() % 4 ? "cmd= %\tkey09-"[rand() % 13] : (char)(1 + rand() % 255);
        text[len] = '\0';
        struct pmi_line line;
        long v;
        if (pmi_line_parse(text, &line)) {
            EXPECT(line.n <= PMI_WORDS_MAX);
            for (unsigned i = 0; i < line.n; i++) {
                EXPECT(*line.word[i].key && line.word[i].key >= text &&
                       line.word[i].value < text + sizeof(text));
                EXPECT(strpbrk(line.word[i].value, " \t") == NULL);
                pmi_line_int(&line, line.word[i].key, -100, 100, &v);
            }
        }
        pmi_unescape(text);
        EXPECT(strlen(text) < sizeof(text));
    }
}

int main(void)
{
    TEST_RUN(test_words);
    TEST_RUN(test_invalid_lines_are_refused);
    TEST_RUN(test_numbers);
    TEST_RUN(test_escapes);
    TEST_RUN(test_fuzz);
    return test_result();
}
