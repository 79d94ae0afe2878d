/* chosen.c: every blocking collective with the algorithms that the library chooses.
 *
 * ranks: 1 2 3 4 5 8
 * also: FISHPLATE_COLL_READ=always
 * also: FISHPLATE_COLL_READ=never
 * also: FISHPLATE_SHM_CMA=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"
