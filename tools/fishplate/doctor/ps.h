/* ps.h: tables of jobs and of ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_PS_H
#define FP_DOCTOR_PS_H

#include <stdio.h>

#include "sample.h"

void ps_jobs(FILE *out, const struct snapshots *now);

/* One line per rank with rates since the previous sample, at most `lines` lines (0: all). Then ranks in the
 * same state are printed together. */
void ps_job(FILE *out, const struct snapshot *now, const struct snapshot *before, int lines);

/* The slowest links of the job, the slow ones named (ps_links.c). */
struct json;
void ps_links(FILE *out, const struct snapshot *l);
void ps_links_json(struct json *j, const struct snapshot *l);

void ps_json(FILE *out, const struct snapshots *now, const struct snapshots *before);

#endif
