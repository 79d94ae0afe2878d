/* ps.h: prints the tables of jobs and of ranks of `fishplate ps`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_PS_H
#define FP_DOCTOR_PS_H

#include <stdio.h>

#include "sample.h"

void ps_jobs(FILE *out, const struct snapshots *now);

/* Prints one line per rank with rates since the previous sample, at most `lines` lines (0: all), then late
 * ranks and slow links. */
void ps_job(FILE *out, const struct snapshot *now, const struct snapshot *before, int lines);

/* Prints the slow links of the job, or the slowest one if none is slow (ps_links.c). */
struct json;
void ps_links(FILE *out, const struct snapshot *l);
void ps_links_json(struct json *j, const struct snapshot *l);

void ps_json(FILE *out, const struct snapshots *now, const struct snapshots *before);

#endif
