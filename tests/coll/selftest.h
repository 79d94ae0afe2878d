/* selftest.h: does the checker see mistakes? Returns the number it missed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_COLL_SELFTEST_H
#define FP_TESTS_COLL_SELFTEST_H

int selftest(void);

#endif
