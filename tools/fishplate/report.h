/* report.h: sections with a table, each written once and printed for a terminal or as HTML. Either form may
 * have parts that the other lacks: a bar has no text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_REPORT_H
#define FP_TOOLS_REPORT_H

#include <stdbool.h>
#include <stdio.h>

struct report_column {
    const char *name;
    int width; /* characters in text; negative: aligned left; 0: the column is in HTML only */
};

struct report {
    FILE *out;
    bool html;
    const struct report_column *columns; /* columns of the open table; NULL: no table is open */
    int at;                              /* column of the next cell */
};

/* A title, and a sentence about the section. */
void report_section(struct report *r, const char *title, const char *about);
void report_section_end(struct report *r);

/* The columns end with a name of NULL. A row is ended by its last cell. */
void report_table(struct report *r, const struct report_column *columns);
void report_table_end(struct report *r);

/* The next cell. HTML gets the style (NULL: none) as class. */
void report_cell(struct report *r, const char *style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A cell of HTML tags of the caller, without a column in text. */
void report_cell_html(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A paragraph, or an indented line. */
void report_line(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
