/* table.c: a table as text or as JSON: what was measured, what the paper reports, and our comment.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ib.h"
#include "cli/number.h"

enum { COLUMNS_MAX = 16, TEXT_MAX = 400, REMARKS_MAX = 8 };

struct ib_table {
    struct ib_driver *driver;
    const char *title, *paper;
    char *columns[COLUMNS_MAX];
    int ncolumns;
    char **cells;
    int ncells;
    char *remarks[REMARKS_MAX];
    int nremarks;
};

static char *table_format_text(const char *fmt, va_list ap)
{
    char text[TEXT_MAX];
    vsnprintf(text, sizeof(text), fmt, ap);
    char *copy = strdup(text);
    if (!copy)
        abort();
    return copy;
}

struct ib_table *ib_table_open(struct ib_driver *d, const char *title, const char *paper)
{
    struct ib_table *t = calloc(1, sizeof(*t));
    if (!t)
        abort();
    *t = (struct ib_table){.driver = d, .title = title, .paper = paper};
    return t;
}

void ib_table_add_column(struct ib_table *t, const char *name, ...)
{
    va_list ap;
    if (t->ncolumns == COLUMNS_MAX)
        abort();
    va_start(ap, name);
    t->columns[t->ncolumns++] = table_format_text(name, ap);
    va_end(ap);
}

void ib_table_add_cell(struct ib_table *t, const char *text, ...)
{
    va_list ap;
    if (t->ncells % 64 == 0) {
        t->cells = realloc(t->cells, sizeof(*t->cells) * (size_t)(t->ncells + 64));
        if (!t->cells)
            abort();
    }
    va_start(ap, text);
    t->cells[t->ncells++] = table_format_text(text, ap);
    va_end(ap);
}

void ib_table_add_number(struct ib_table *t, double value, int digits)
{
    if (isnan(value))
        ib_table_add_cell(t, "-");
    else
        ib_table_add_cell(t, "%.*f", digits, value);
}

void ib_table_add_remark(struct ib_table *t, const char *text, ...)
{
    va_list ap;
    if (t->nremarks == REMARKS_MAX)
        return;
    va_start(ap, text);
    t->remarks[t->nremarks++] = table_format_text(text, ap);
    va_end(ap);
}

static void table_print_text(const struct ib_table *t)
{
    int width[COLUMNS_MAX];
    for (int c = 0; c < t->ncolumns; c++) {
        width[c] = (int)strlen(t->columns[c]);
        for (int i = c; i < t->ncells; i += t->ncolumns)
            if ((int)strlen(t->cells[i]) > width[c])
                width[c] = (int)strlen(t->cells[i]);
    }
    printf("\n%s\n\n   ", t->title);
    for (int c = 0; c < t->ncolumns; c++)
        printf(c ? "  %*s" : " %-*s", width[c], t->columns[c]);
    for (int i = 0; i < t->ncells; i++) {
        int c = i % t->ncolumns;
        printf("%s", c ? "" : "\n   ");
        printf(c ? "  %*s" : " %-*s", width[c], t->cells[i]);
    }
    printf("\n\nOver:  %s\n", t->driver->adapter);
    printf("Paper: %s\n", t->paper);
    for (int i = 0; i < t->nremarks; i++)
        printf("Here:  %s\n", t->remarks[i]);
}

/* Writes a cell; numeric text becomes a JSON number. */
static void table_write_cell(struct json *j, const char *text)
{
    double value;
    if (number_parse_real(text, -DBL_MAX, DBL_MAX, &value))
        json_real(j, NULL, value);
    else
        json_string(j, NULL, text);
}

static void table_write_list(struct json *j, const char *key, char *const *texts, int n)
{
    json_array(j, key);
    for (int i = 0; i < n; i++)
        json_string(j, NULL, texts[i]);
    json_end(j);
}

static void table_print_json(const struct ib_table *t)
{
    struct json *j = &t->driver->document;
    json_object(j, NULL);
    json_string(j, "title", t->title);
    json_string(j, "adapter", t->driver->adapter);
    json_string(j, "paper", t->paper);
    table_write_list(j, "here", t->remarks, t->nremarks);
    table_write_list(j, "columns", t->columns, t->ncolumns);
    json_array(j, "rows");
    for (int i = 0; i < t->ncells; i++) {
        if (i % t->ncolumns == 0)
            json_array(j, NULL);
        table_write_cell(j, t->cells[i]);
        if (i % t->ncolumns == t->ncolumns - 1)
            json_end(j);
    }
    json_end(j);
    json_end(j);
}

void ib_table_close(struct ib_table *t)
{
    if (t->driver->terminal)
        fprintf(stderr, "\r\033[K");
    if (t->driver->json)
        table_print_json(t);
    else
        table_print_text(t);
    fflush(stdout);
    t->driver->tables++;
    for (int i = 0; i < t->ncolumns; i++)
        free(t->columns[i]);
    for (int i = 0; i < t->ncells; i++)
        free(t->cells[i]);
    for (int i = 0; i < t->nremarks; i++)
        free(t->remarks[i]);
    free(t->cells);
    free(t);
}
