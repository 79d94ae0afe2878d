/* test_validate.c: the results of all checks of `fishplate-lab sim validate` are within their bounds, and a
 * wrong result is detected.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test.h"
#include "validate.h"

static void test_every_check_is_within_bound(void)
{
    struct validate_row rows[VALIDATE_ROWS];
    int count = validate_all(rows);
    EXPECT(count >= 12);
    for (int i = 0; i < count; i++) {
        if (!validate_row_is_within_bound(&rows[i]))
            printf("  %s: expected %g, found %g\n", rows[i].quantity, rows[i].expected, rows[i].found);
        EXPECT(validate_row_is_within_bound(&rows[i]));
    }
}

static void test_wrong_results_are_detected(void)
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
    TEST_RUN(test_every_check_is_within_bound);
    TEST_RUN(test_wrong_results_are_detected);
    return test_result();
}
