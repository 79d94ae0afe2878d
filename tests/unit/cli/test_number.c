/* test_number.c: parsing of numbers on command lines: valid and invalid text, and the bounds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/number.h"
#include "test.h"

static void test_integers(void)
{
    static const char *const bad[] = {"", " 1", "1 ", "1x", "x", "1.5", "99999999999999999999", "0", "11"};
    long value = 7;
    EXPECT(number_parse_integer("10", 1, 10, &value));
    EXPECT_EQ(value, 10);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        EXPECT(!number_parse_integer(bad[i], 1, 10, &value));
    EXPECT_EQ(value, 10);
}

static void test_real_numbers(void)
{
    static const char *const bad[] = {"", "nan", "inf", "1s", "-1", " 1", "2.5"};
    double value = 7;
    EXPECT(number_parse_real("0.25", 0, 2, &value));
    EXPECT(value == 0.25);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        EXPECT(!number_parse_real(bad[i], 0, 2, &value));
    EXPECT(value == 0.25);
}

static void test_sizes(void)
{
    static const char *const bad[] = {"", ",", "8,,9", "k", "8kk", "2G", "99999999999", "-8", "1,2,3,4,5"};
    size_t list[4];
    int count = 0;
    EXPECT(number_sizes("8,64k,4M,1G", list, 4, &count));
    EXPECT_EQ(count, 4);
    EXPECT_EQ(list[1], 65536);
    EXPECT_EQ(list[2], 4 << 20);
    EXPECT_EQ(list[3], 1 << 30);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int untouched = -1;
        EXPECT(!number_sizes(bad[i], list, 4, &untouched));
    }
}

static void test_printed_numbers(void)
{
    char text[32];
    number_print_size(1000, text);
    EXPECT_STR(text, "1000 B");
    number_print_size(64 << 10, text);
    EXPECT_STR(text, "64 KiB");
    number_print_size((size_t)4 << 30, text);
    EXPECT_STR(text, "4096 MiB");
}

int main(void)
{
    TEST_RUN(test_integers);
    TEST_RUN(test_real_numbers);
    TEST_RUN(test_sizes);
    TEST_RUN(test_printed_numbers);
    return test_result();
}
