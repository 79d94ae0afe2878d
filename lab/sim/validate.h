/* validate.h: the simulator beside what can be worked out on paper, and beside itself: each check is a row of what was
 * expected, what was found and how far they may differ.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_VALIDATE_H
#define FP_SIM_VALIDATE_H

#include <stdbool.h>

struct validate_row {
    const char *against; /* "closed form", "itself" */
    const char *what, *unit;
    double expected, found;
    double bound; /* of the relative error; 0: they must be equal but for the rounding of picoseconds */
};

enum { VALIDATE_ROWS = 16 };

int validate_all(struct validate_row rows[VALIDATE_ROWS]); /* how many */
double validate_error(const struct validate_row *r);       /* relative */
bool validate_good(const struct validate_row *r);

#endif
