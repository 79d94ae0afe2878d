/* load.h: how much of the processors' time other programs used while a command ran.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_PAPERS_LOAD_H
#define FP_LAB_PAPERS_LOAD_H

#include <stdbool.h>
#include <stdio.h>

/* Seconds of all processors together, since the system started, and of the ended children of this process. */
struct load {
    double busy, all, own;
};

/* The first line of /proc/stat; false: it is none. */
bool load_parse(const char *line, double ticks_per_second, struct load *out);
/* Reads the present load; false: the system does not report it. */
bool load_read(struct load *out);
/* Part of all processors' time between two states that neither was idle nor was used by children: 0 to 1. */
double load_others(const struct load *before, const struct load *after);

#endif
