/* chosen.c: every blocking collective with the algorithms that the library chooses.
 *
 * ranks: 1 2 3 4 5 8
 * also: FISHPLATE_COLL=copy=read
 * also: FISHPLATE_COLL=copy=slots
 * also: FISHPLATE_SHM_CMA=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"
