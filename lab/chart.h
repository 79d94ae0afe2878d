/* chart.h: a line chart, written as a table, as JSON or as a self-contained SVG.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_CHART_H
#define FP_LAB_CHART_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/json.h"

enum { CHART_LINES = 12, CHART_POINTS = 64 };

struct chart {
    const char *id; /* figure number, such as "8.17"; also the name of the SVG file */
    const char *title;
    const char *x_name, *y_name;
    const char *format; /* printf format of the values of y in the table, "%.3f" */
    bool by_factors;    /* logarithmic x axis */
    bool x_bytes;       /* x is a size in bytes */
    int lines, points;
    const char *name[CHART_LINES];
    /* in the SVG: points without a line; a line without points */
    bool dots[CHART_LINES], smooth[CHART_LINES];
    double x[CHART_POINTS];
    double y[CHART_LINES][CHART_POINTS]; /* NaN: no value */
};

/* Adds a line and returns its index in y, or -1 if there are too many. `name` must live as long as the
 * chart. */
int chart_line(struct chart *c, const char *name);

void chart_table(const struct chart *c, FILE *out);
void chart_json(const struct chart *c, struct json *j);
void chart_svg(const struct chart *c, FILE *out);

#endif
