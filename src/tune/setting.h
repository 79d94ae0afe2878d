/* setting.h: whether the library may learn from measurements: FISHPLATE_TUNE. Clients whose answer is no use
 * the rule's candidate and measure nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TUNE_SETTING_H
#define FP_TUNE_SETTING_H

#include <stdbool.h>

bool tune_is_enabled(void);

#endif
