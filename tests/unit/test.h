/* test.h: the framework of the unit tests. A failed check prints the expected and the found value, and the
 * test continues.
 *
 *     int main(void) { TEST_RUN(ring_wraps); TEST_RUN(ring_full); return test_result(); }
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_TEST_H
#define FP_TESTS_TEST_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int test_failures;

#define EXPECT(cond)                                                                    \
    do {                                                                                \
        if (!(cond)) {                                                                  \
            printf("%s:%d: in %s: expected %s\n", __FILE__, __LINE__, __func__, #cond); \
            test_failures++;                                                            \
        }                                                                               \
    } while (0)

#define EXPECT_EQ(actual, wanted)                                                                      \
    do {                                                                                               \
        long long test_a = (long long)(actual), test_w = (long long)(wanted);                          \
        if (test_a != test_w) {                                                                        \
            printf("%s:%d: in %s: %s is %lld, expected %lld\n", __FILE__, __LINE__, __func__, #actual, \
                   test_a, test_w);                                                                    \
            test_failures++;                                                                           \
        }                                                                                              \
    } while (0)

#define EXPECT_STR(actual, wanted)                                                                         \
    do {                                                                                                   \
        const char *test_a = (actual), *test_w = (wanted);                                                 \
        if (strcmp(test_a, test_w) != 0) {                                                                 \
            printf("%s:%d: in %s: %s is \"%s\", expected \"%s\"\n", __FILE__, __LINE__, __func__, #actual, \
                   test_a, test_w);                                                                        \
            test_failures++;                                                                               \
        }                                                                                                  \
    } while (0)

#define TEST_RUN(name)                                                       \
    do {                                                                     \
        int before = test_failures;                                          \
        name();                                                              \
        printf("%s %s\n", test_failures == before ? "ok  " : "FAIL", #name); \
    } while (0)

static inline int test_result(void)
{
    return test_failures ? 1 : 0;
}

#endif
