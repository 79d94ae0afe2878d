/* expect.h: checks that count failures, so that a test continues after a failed check.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_TESTS_EXPECT_H
#define SOFTIB_TESTS_EXPECT_H

#include <stdio.h>

static int failures;

#define EXPECT(cond)                                         \
    do {                                                     \
        if (!(cond)) {                                       \
            printf("FAILED line %d: %s\n", __LINE__, #cond); \
            failures++;                                      \
        }                                                    \
    } while (0)

#endif
