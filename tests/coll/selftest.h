/* selftest.h: tests whether the checker finds errors in schedules.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_COLL_SELFTEST_H
#define FP_TESTS_COLL_SELFTEST_H

int selftest(void); /* returns the number of errors that the checker missed */

#endif
