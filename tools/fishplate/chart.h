/* chart.h: a line chart, written as a table, as JSON or as a self-contained SVG.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_CHART_H
#define FP_TOOLS_CHART_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/json.h"

enum { CHART_LINES = 12, CHART_POINTS = 64 };

struct chart {
    const char *id; /* "8.17": names the file of the SVG too */
    const char *title;
    const char *x_name, *y_name;
    const char *format; /* printf format of the values of y in the table, "%.3f" */
    bool by_factors;    /* x grows by factors: equal distances for equal factors */
    bool x_bytes;       /* x is a size in bytes */
    int lines, points;
    const char *name[CHART_LINES];
    bool dots[CHART_LINES], smooth[CHART_LINES]; /* in the SVG: points alone, a curve without points */
    double x[CHART_POINTS];
    double y[CHART_LINES][CHART_POINTS]; /* not a number: there is none */
};

/* A line more; the name must live as long as the chart. Its values are set by number. Returns -1 when there are too many.
 * */
int chart_line(struct chart *c, const char *name);

void chart_table(const struct chart *c, FILE *out);
void chart_json(const struct chart *c, struct json *j);
void chart_svg(const struct chart *c, FILE *out);

#endif
