/* test_tunable.c: tunables of every type: valid and invalid values, the value after a refusal, and how
 * mistakes in the environment are counted.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/nearest.h"
#include "base/tunable.h"
#include "test.h"

static TUNABLE_BOOL(t_bool, "T_BOOL", 1, "A switch.");
static TUNABLE_INT(t_int, "T_INT", 7, -5, 100, "A number.");
static TUNABLE_SIZE(t_size, "T_SIZE", 4096, 64, 1 << 30, "A size.");
static TUNABLE_STRING(t_string, "T_STRING", "Words.");
static TUNABLE_CHOICE(t_choice, "T_CHOICE", 0, "auto|copy|get", "A choice.");
static LABORATORY_INT(t_lab, "T_LAB", 3, 0, 100, "Of the laboratory.");
static TUNABLE_CHOICE_FEW(t_few, "T_FEW", 0, "one|two|three", 2, "A choice of which two are for users.");

static int set_from_text(struct tunable *t, const char *text)
{
    return tunable_set(t, text, SOURCE_DEFAULT);
}

static void test_booleans(void)
{
    static const char *const yes[] = {"1", "yes", "on", "true"}, *const no[] = {"0", "no", "off", "false"};
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(set_from_text(&t_bool, yes[i]), 0);
        EXPECT_EQ(t_bool.value, 1);
        EXPECT_EQ(set_from_text(&t_bool, no[i]), 0);
        EXPECT_EQ(t_bool.value, 0);
    }
    EXPECT_EQ(set_from_text(&t_bool, "2"), MPI_ERR_ARG);
    EXPECT_EQ(set_from_text(&t_bool, ""), MPI_ERR_ARG);
    EXPECT_EQ(t_bool.value, 0);
}

static void test_numbers(void)
{
    EXPECT_EQ(set_from_text(&t_int, "-5"), 0);
    EXPECT_EQ(t_int.value, -5);
    EXPECT_EQ(set_from_text(&t_int, "100"), 0);
    EXPECT_EQ(t_int.value, 100);
    static const char *const bad[] = {"-6",   "101", "1k", "", "x", "1 ", "99999999999999999999",
                                      "0x10", "1.5"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        EXPECT_EQ(set_from_text(&t_int, bad[i]), MPI_ERR_ARG);
    EXPECT_EQ(t_int.value, 100);
    EXPECT(strstr(err_detail(MPI_ERR_ARG), "FISHPLATE_T_INT") != NULL);
}

static void test_sizes(void)
{
    static const struct {
        const char *text;
        int64_t value;
        const char *shown;
    } good[] = {{"64", 64, "64"},       {"1k", 1024, "1k"},       {"64K", 65536, "64k"},
                {"2m", 2 << 20, "2m"},  {"1g", 1 << 30, "1024m"}, {"4kb", 4096, "4k"},
                {"3MB", 3 << 20, "3m"}, {"1025", 1025, "1025"}};
    char text[64];
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        EXPECT_EQ(set_from_text(&t_size, good[i].text), 0);
        EXPECT_EQ(t_size.value, good[i].value);
        tunable_format(&t_size, text, sizeof(text));
        EXPECT_STR(text, good[i].shown);
    }
    static const char *const bad[] = {"63", "2g", "1t", "k", "1kk", "1kbb", "-1k", "9223372036854775807g"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        EXPECT_EQ(set_from_text(&t_size, bad[i]), MPI_ERR_ARG);
    EXPECT_EQ(t_size.value, 1025);
}

static void test_choices_and_strings(void)
{
    char text[64];
    EXPECT_EQ(set_from_text(&t_choice, "get"), 0);
    EXPECT_EQ(t_choice.value, 2);
    tunable_format(&t_choice, text, sizeof(text));
    EXPECT_STR(text, "get");
    static const char *const bad[] = {"", "ge", "gett", "auto|copy", "|"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        EXPECT_EQ(set_from_text(&t_choice, bad[i]), MPI_ERR_ARG);
    EXPECT_EQ(t_choice.value, 2);
    EXPECT_EQ(set_from_text(&t_string, "any words"), 0);
    EXPECT_STR(t_string.text, "any words");
    t_string.text = "";
}

static void test_environment(void)
{
    setenv("FISHPLATE_T_INT", "42", 1);
    EXPECT_EQ(tunables_load(), 0);
    EXPECT_EQ(t_int.value, 42);
    EXPECT_EQ(t_int.source, SOURCE_ENVIRONMENT);
    setenv("FISHPLATE_T_INT", "4711", 1); /* out of range: the old value remains */
    setenv("FISHPLATE_T_INTT", "1", 1);   /* a misspelled name */
    setenv("FISHPLATE_HOST", "x", 1);     /* accepted: a variable of mpiexec */
    setenv("FISHPLATE_A_NAME_THAT_IS_MUCH_LONGER_THAN_ANY_TUNABLE_OF_THIS_LIBRARY_WILL_EVER_BE", "1", 1);
    EXPECT_EQ(tunables_load(), 3);
    EXPECT_EQ(t_int.value, 42);
    EXPECT_EQ(tunable_set(&t_int, "5", SOURCE_PROGRAM), 0); /* the program's value remains */
    setenv("FISHPLATE_T_INT", "6", 1);
    tunables_load();
    EXPECT_EQ(t_int.value, 5);
    EXPECT(tunables_find("T_SIZE") == &t_size);
    EXPECT(tunables_find("T_SIZ") == NULL);
    for (size_t i = 1; i < tunables_count(); i++)
        EXPECT(strcmp(tunables_get(i - 1)->name, tunables_get(i)->name) < 0);
    EXPECT(tunables_get(tunables_count()) == NULL);
}

/* Laboratory settings are refused as environment variables of their own and accepted in FISHPLATE_LAB. */
static void test_laboratory_settings(void)
{
    clearenv();
    setenv("FISHPLATE_T_LAB", "4", 1);
    setenv("FISHPLATE_T_FEW", "three", 1);
    EXPECT_EQ(tunables_load(), 2);
    EXPECT_EQ(t_lab.value, 3);
    EXPECT_EQ(t_few.value, 0);
    clearenv();
    setenv("FISHPLATE_T_FEW", "two", 1);
    setenv("FISHPLATE_LAB", "T_LAB=5,T_SIZE=8k", 1);
    EXPECT_EQ(tunables_load(), 0);
    EXPECT_EQ(t_lab.value, 5);
    EXPECT_EQ(t_few.value, 1);
    EXPECT_EQ(t_size.value, 8192);
    setenv("FISHPLATE_LAB", "T_FEW=three,T_LAB=101,T_LABB=1,T_LAB", 1); /* out of range, unknown, no value */
    EXPECT_EQ(tunables_load(), 3);
    EXPECT_EQ(t_few.value, 2);
    EXPECT_EQ(t_lab.value, 5);
    clearenv();
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    EXPECT(f != NULL);
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

/* The user's file sets tunables that the environment does not set; a file that others can write is not
 * read. */
static void test_user_file(void)
{
    char folder[] = "/tmp/fishplate-settings-XXXXXX", path[64];
    EXPECT(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/fishplate.conf", folder);
    clearenv();
    setenv("FISHPLATE_LAB", "", 1);
    setenv("XDG_CONFIG_HOME", folder, 1);
    write_file(path, "# sizes\n  T_SIZE = 16k \r\n\nFISHPLATE_T_STRING=two words\nT_CHOICE=auto\n");
    setenv("FISHPLATE_T_CHOICE", "get", 1);
    EXPECT_EQ(tunables_load(), 0);
    EXPECT_EQ(t_size.value, 16384);
    EXPECT_EQ(t_size.source, SOURCE_USER_FILE);
    EXPECT_STR(t_string.text, "two words");
    EXPECT_EQ(t_choice.source, SOURCE_ENVIRONMENT);
    write_file(path, "T_SIZE = 1x\nT_SIZZE = 1\nno setting\nT_LAB=4\nT_SIZE = 32k");
    EXPECT_EQ(tunables_load(), 4);
    EXPECT_EQ(t_size.value, 32768);
    write_file(path, "T_SIZE = 64k\n");
    chmod(path, 0666);
    EXPECT_EQ(tunables_load(), 1);
    EXPECT_EQ(t_size.value, 32768);
    unlink(path);
    EXPECT_EQ(tunables_load(), 0);
    EXPECT_EQ(mkfifo(path, 0600), 0); /* a reader would wait forever */
    EXPECT_EQ(tunables_load(), 1);
    unlink(path);
    rmdir(folder);
    clearenv();
}

static const char *find_nearest(const char *typed)
{
    static const char *const names[] = {"EAGER_MAX", "SHM_RING", "SHM_FRAME", "SPIN_US"};
    struct nearest best = nearest_start_search(typed);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        nearest_compare_candidate(&best, names[i]);
    return best.word ? best.word : "none";
}

static void test_nearest_names(void)
{
    EXPECT_STR(find_nearest("EAGERMAX"), "EAGER_MAX");
    EXPECT_STR(find_nearest("EAGRE_MAX"), "EAGER_MAX");
    EXPECT_STR(find_nearest("SHM_RNIG"), "SHM_RING");
    EXPECT_STR(find_nearest("SPIN"), "none");
    EXPECT_STR(find_nearest("SPIN_S"), "SPIN_US");
    EXPECT_STR(find_nearest("COMPLETELY_DIFFERENT"), "none");
    EXPECT_STR(find_nearest(""), "none");
}

int main(void)
{
    TEST_RUN(test_booleans);
    TEST_RUN(test_numbers);
    TEST_RUN(test_sizes);
    TEST_RUN(test_choices_and_strings);
    TEST_RUN(test_environment);
    TEST_RUN(test_laboratory_settings);
    TEST_RUN(test_user_file);
    TEST_RUN(test_nearest_names);
    return test_result();
}
