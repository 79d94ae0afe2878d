/* text_table.h: sections and tables of a text report.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_TEXT_TABLE_H
#define FP_TOOLS_TEXT_TABLE_H

#include <stdbool.h>
#include <stdio.h>

struct text_column {
    const char *name;
    int width; /* characters; negative: aligned left */
};

struct text_table {
    FILE *out;
    const struct text_column *columns; /* of the open table */
    int at;                            /* column of the next cell */
};

/* Prints a title and a sentence about the section. */
void text_section(FILE *out, const char *title, const char *about);

/* Prints the names of the columns, whose list ends with a NULL name. */
void text_table_head(struct text_table *t, const struct text_column *columns);

/* Prints the next cell; the last one of a row ends the row. */
void text_cell(struct text_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
