/* setting.c: the setting FISHPLATE_TUNE.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/setting.h"

#include "base/tunable.h"

static TUNABLE_BOOL(
    tune, "TUNE", 1,
    "Choose protocols and algorithms by measuring what they cost while the program runs. off: "
    "use built-in rules only, so that two runs make the same choices.");

bool tune_is_enabled(void)
{
    return tune.value != 0;
}
