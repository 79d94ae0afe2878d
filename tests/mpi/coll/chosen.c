/* chosen.c: every blocking collective with the algorithms that the library chooses.
 *
 * ranks: 1 2 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"
