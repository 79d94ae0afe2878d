/* setting.h: reports whether FISHPLATE_TUNE permits choices by measured costs. If not, clients use candidate
 * 0, the choice of the built-in rule, and measure nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TUNE_SETTING_H
#define FP_TUNE_SETTING_H

#include <stdbool.h>

bool tune_is_enabled(void);

#endif
