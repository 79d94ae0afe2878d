/* expect.h: checks that print the value found on failure. A program ends with `return expect_done();`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_EXPECT_H
#define FP_TESTS_EXPECT_H

#include <stdio.h>

static int expect_failures;

#define EXPECT(condition) expect_true((condition) != 0, #condition, __FILE__, __LINE__)
#define EXPECT_EQ(found, wanted) \
    expect_equal((long long)(found), (long long)(wanted), #found, __FILE__, __LINE__)

static inline void expect_true(int holds, const char *text, const char *file, int line)
{
    if (holds)
        return;
    expect_failures++;
    printf("%s:%d: does not hold: %s\n", file, line, text);
}

static inline void expect_equal(long long found, long long wanted, const char *text, const char *file,
                                int line)
{
    if (found == wanted)
        return;
    expect_failures++;
    printf("%s:%d: %s is %lld, expected %lld\n", file, line, text, found, wanted);
}

static inline int expect_done(void)
{
    if (expect_failures)
        printf("%d checks failed\n", expect_failures);
    return expect_failures != 0;
}

#endif
