/* npb.h: `fishplate-lab kernels --npb DIR`: compares the original NAS suite with our kernels.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_NPB_H
#define FP_LAB_NPB_H

#include <stdbool.h>

bool npb_is_requested(int argc, char **argv);
int bench_npb_main(int argc, char **argv); /* returns the exit status */

#endif
