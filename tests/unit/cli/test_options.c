/* test_options.c: tables of options: every kind of value in both spellings, operands, mistakes, and the help text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "test.h"

struct filled {
    bool flag;
    const char *text;
    int whole, choice, calls, operands;
    double real;
    size_t size;
};

static bool options_call(void *to, const char *value)
{
    ((struct filled *)to)->calls++;
    return strcmp(value, "good") == 0;
}

static bool options_operand(void *to, const char *word)
{
    ((struct filled *)to)->operands++;
    return strcmp(word, "latency") == 0;
}

static const char *const words[] = {"zero", "one", NULL};
static const struct cli_option table[] = {
    CLI_FLAG_LINE("-f|--flag", struct filled, flag, "a flag"),
    CLI_TEXT_LINE("--text", "FILE", struct filled, text, "a text"),
    CLI_INT_LINE("--whole", "N", struct filled, whole, 1, 10, "a whole number"),
    CLI_REAL_LINE("--real", "S", struct filled, real, 0.5, 2, "a number"),
    CLI_SIZE_LINE("--size", "64k", struct filled, size, 1, 1 << 20, "a size"),
    CLI_CHOICE_LINE("--choice", "one", struct filled, choice, words, "a word"),
    CLI_CALL_LINE("--call", "X", options_call, NULL),
    CLI_END};

static int options_parse(struct filled *f, bool stops, const char *line)
{
    char *copy = strdup(line), *argv[16] = {"command"}, *save = NULL;
    int argc = 1;
    const struct cli c = {.program = "test",
                          .options = table,
                          .operand = stops ? NULL : options_operand,
                          .operands = "a test",
                          .stops = stops,
                          .silent = true};
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    *f = (struct filled){0};
    const int next = cli_parse(&c, argc, argv, f);
    if (f->text)
        f->text = "some"; /* lies in `copy` */
    free(copy);
    return next;
}

static void every_kind(void)
{
    struct filled f;
    EXPECT_EQ(
        options_parse(&f, false,
                      "--flag --text a --whole 7 --real=1.5 --size 64k --choice=one --call good latency"),
        13);
    EXPECT(f.flag && f.text && f.whole == 7 && f.real == 1.5 && f.size == 65536 && f.choice == 1 &&
           f.calls == 1);
    EXPECT_EQ(f.operands, 1);
    EXPECT_EQ(options_parse(&f, false, "-f"), 2);
    EXPECT(f.flag);
}

static void options_invalid_calls(void)
{
    static const char *const bad[] = {"--flag=1",  "--whole",   "--whole 11", "--whole=x",
                                      "--real 3",  "--size 2M", "--choice x", "--call bad",
                                      "--nothing", "bandwidth", "--text=",    "--flagg"};
    struct filled f;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        EXPECT_EQ(options_parse(&f, false, bad[i]), CLI_INVALID);
    EXPECT_EQ(options_parse(&f, false, "--flag --help --nothing"), CLI_HELP);
}

static void where_it_stops(void)
{
    struct filled f;
    EXPECT_EQ(options_parse(&f, true, "--flag mpiexec --whole 99"), 2);
    EXPECT_EQ(options_parse(&f, true, "--flag -- --whole 99"), 3);
    EXPECT(f.flag && f.whole == 0);
}

static void test_help(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    cli_print_options(table, out);
    fclose(out);
    EXPECT(strstr(text, "  --flag ") && strstr(text, "  --text FILE ") && strstr(text, "  --help "));
    EXPECT(!strstr(text, "--call"));
    free(text);
}

int main(void)
{
    TEST_RUN(every_kind);
    TEST_RUN(options_invalid_calls);
    TEST_RUN(where_it_stops);
    TEST_RUN(test_help);
    return test_result();
}
