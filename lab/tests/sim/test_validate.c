/* test_validate.c: the checks of `fishplate-lab sim validate` are within their bounds, and a wrong result is
 * detected.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test.h"
#include "validate.h"

static void every_check_holds(void)
{
    struct validate_row rows[VALIDATE_ROWS];
    int count = validate_all(rows);
    EXPECT(count >= 12);
    for (int i = 0; i < count; i++) {
        if (!validate_row_is_within_bound(&rows[i]))
            printf("  %s: expected %g, found %g\n", rows[i].what, rows[i].expected, rows[i].found);
        EXPECT(validate_row_is_within_bound(&rows[i]));
    }
}

static void wrong_answers_are_seen(void)
{
    struct validate_row r = {.expected = 100, .found = 103, .bound = 0.02};
    EXPECT(!validate_row_is_within_bound(&r));
    r.bound = 0.04;
    EXPECT(validate_row_is_within_bound(&r));
    r.found = 0.0 / 0.0;
    EXPECT(!validate_row_is_within_bound(&r));
}

int main(void)
{
    TEST_RUN(every_check_holds);
    TEST_RUN(wrong_answers_are_seen);
    return test_result();
}
