/* test_options.c: tables of command-line options: every kind of value in both spellings, operands, invalid
 * options, and the help text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "test.h"

struct option_values {
    bool flag;
    const char *text;
    int whole, choice, calls, operands;
    double real;
    size_t size;
};

static bool count_call(void *to, const char *value)
{
    ((struct option_values *)to)->calls++;
    return strcmp(value, "good") == 0;
}

static bool count_operand(void *to, const char *word)
{
    ((struct option_values *)to)->operands++;
    return strcmp(word, "latency") == 0;
}

static const char *const words[] = {"zero", "one", NULL};
static const struct cli_option table[] = {
    CLI_FLAG_LINE("-f|--flag", struct option_values, flag, "a flag"),
    CLI_TEXT_LINE("--text", "FILE", struct option_values, text, "a text"),
    CLI_INT_LINE("--whole", "N", struct option_values, whole, 1, 10, "a whole number"),
    CLI_REAL_LINE("--real", "S", struct option_values, real, 0.5, 2, "a number"),
    CLI_SIZE_LINE("--size", "64k", struct option_values, size, 1, 1 << 20, "a size"),
    CLI_CHOICE_LINE("--choice", "one", struct option_values, choice, words, "a word"),
    CLI_CALL_LINE("--call", "X", count_call, NULL),
    CLI_END};

static int parse_line(struct option_values *f, bool stops, const char *line)
{
    char *copy = strdup(line), *argv[16] = {"command"}, *save = NULL;
    int argc = 1;
    const struct cli c = {.program = "test",
                          .options = table,
                          .operand = stops ? NULL : count_operand,
                          .operands = "a test",
                          .stops = stops,
                          .silent = true};
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    *f = (struct option_values){0};
    const int next = cli_parse(&c, argc, argv, f);
    if (f->text)
        f->text = "some"; /* the parsed text is in `copy`, which ends with this function */
    free(copy);
    return next;
}

static void test_every_kind(void)
{
    struct option_values f;
    EXPECT_EQ(parse_line(&f, false,
                         "--flag --text a --whole 7 --real=1.5 --size 64k --choice=one --call good latency"),
              13);
    EXPECT(f.flag && f.text && f.whole == 7 && f.real == 1.5 && f.size == 65536 && f.choice == 1 &&
           f.calls == 1);
    EXPECT_EQ(f.operands, 1);
    EXPECT_EQ(parse_line(&f, false, "-f"), 2);
    EXPECT(f.flag);
}

static void test_invalid_options(void)
{
    static const char *const bad[] = {"--flag=1",  "--whole",   "--whole 11", "--whole=x",
                                      "--real 3",  "--size 2M", "--choice x", "--call bad",
                                      "--nothing", "bandwidth", "--text=",    "--flagg"};
    struct option_values f;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        EXPECT_EQ(parse_line(&f, false, bad[i]), CLI_INVALID);
    EXPECT_EQ(parse_line(&f, false, "--flag --help --nothing"), CLI_HELP);
}

static void test_end_of_options(void)
{
    struct option_values f;
    EXPECT_EQ(parse_line(&f, true, "--flag mpiexec --whole 99"), 2);
    EXPECT_EQ(parse_line(&f, true, "--flag -- --whole 99"), 3);
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
    TEST_RUN(test_every_kind);
    TEST_RUN(test_invalid_options);
    TEST_RUN(test_end_of_options);
    TEST_RUN(test_help);
    return test_result();
}
