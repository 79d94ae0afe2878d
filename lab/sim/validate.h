/* validate.h: checks of the simulator against closed forms, and of runs that must give equal results. Each
 * check is a row with the expected value, the result and the permitted difference.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_VALIDATE_H
#define FP_SIM_VALIDATE_H

#include <stdbool.h>

struct validate_row {
    const char *against; /* "closed form" or "itself" (the simulator on another machine or placement) */
    const char *quantity, *unit;
    double expected, found;
    double bound; /* limit of the relative error; 0: equal except for the rounding of picoseconds */
};

enum { VALIDATE_ROWS = 16 };

int validate_all(struct validate_row rows[VALIDATE_ROWS]);    /* returns the number of rows */
double validate_relative_error(const struct validate_row *r); /* relative error */
bool validate_row_is_within_bound(const struct validate_row *r);

#endif
