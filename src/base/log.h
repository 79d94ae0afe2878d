/* log.h: messages of one line on standard error, with a prefix that names rank and host. A warning is a
 * full sentence for users that states the effect and the remedy.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_LOG_H
#define FP_BASE_LOG_H

#include "base/util.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Sets the name of this process for messages, "rank 3 on node7". Copies `host`. */
void log_set_identity(int rank, const char *host);

/* Messages up to this level are printed. FISHPLATE_LOG sets it (error, warn, info, debug); default: warn. */
extern int log_threshold;

void log_print(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3) __attribute__((cold));

#define log_error(...) log_print(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_print(LOG_WARN, __VA_ARGS__)
#define log_info(...)  (log_threshold >= LOG_INFO ? log_print(LOG_INFO, __VA_ARGS__) : (void)0)
#define log_debug(...) (log_threshold >= LOG_DEBUG ? log_print(LOG_DEBUG, __VA_ARGS__) : (void)0)

#endif
