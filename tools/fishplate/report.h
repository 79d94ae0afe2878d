/* report.h: sections with a table, each described once and printed as text or as HTML. Some parts exist in
 * one format only, such as bars in HTML.
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

/* Begins a section with a title and a sentence about it. */
void report_section(struct report *r, const char *title, const char *about);
void report_section_end(struct report *r);

/* Begins a table. The columns end with a NULL name; the last cell of a row ends the row. */
void report_table(struct report *r, const struct report_column *columns);
void report_table_end(struct report *r);

/* Writes the next cell. In HTML `style` (NULL: none) is its class. */
void report_cell(struct report *r, const char *style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes a cell of HTML from the caller; the text report omits it. */
void report_cell_html(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes a paragraph (HTML) or an indented line (text). */
void report_line(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
