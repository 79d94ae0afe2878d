/* prof_charts.h: parts of the HTML report: charts (prof_charts.c), and facts about the run (prof_html_run.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_PROF_CHARTS_H
#define FP_TOOLS_PROF_CHARTS_H

#include "prof.h"

void prof_chart_ranks(const struct prof_job *job, FILE *out);
void prof_chart_peers(const struct prof_job *job, FILE *out);

void prof_html_verdict(const struct prof_job *job, FILE *out);
void prof_html_run(const struct prof_job *job, FILE *out);

#endif
