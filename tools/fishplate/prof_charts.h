/* prof_charts.h: the charts of the HTML report, as SVG inside the page.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_PROF_CHARTS_H
#define FP_TOOLS_PROF_CHARTS_H

#include "prof.h"

void prof_chart_ranks(const struct prof_job *job, FILE *out);
void prof_chart_sizes(const struct prof_job *job, FILE *out);
void prof_chart_peers(const struct prof_job *job, FILE *out);

#endif
