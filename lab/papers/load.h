/* load.h: share of the processors' time that other programs used while a command ran.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_PAPERS_LOAD_H
#define FP_LAB_PAPERS_LOAD_H

#include <stdbool.h>
#include <stdio.h>

/* Seconds of all processors together since the system started; `own`: seconds of this process's ended
 * children. */
struct load {
    double busy, all, own;
};

/* Parses the first line of /proc/stat; false: the line has another form. */
bool load_parse(const char *line, double ticks_per_second, struct load *out);
/* Reads the processor times of the system; false: the system does not report them. */
bool load_read(struct load *out);
/* Share of all processors' time between two readings that was neither idle nor used by our children: 0 to
 * 1. */
double load_share_of_others(const struct load *before, const struct load *after);

#endif
