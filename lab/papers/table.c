/* table.c: tables of figures with their samples.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "papers.h"

static void *table_check_memory(void *memory)
{
    if (!memory) {
        fputs("fishplate-lab papers: out of memory.\n", stderr);
        exit(1);
    }
    return memory;
}

struct table *table_new(const char *title, const char *over)
{
    struct table *t = table_check_memory(calloc(1, sizeof(*t)));
    t->title = table_check_memory(strdup(title));
    t->over = table_check_memory(strdup(over));
    return t;
}

void table_free(struct table *t)
{
    if (!t)
        return;
    for (int c = 0; c < t->columns; c++)
        free(t->names[c]);
    for (int i = 0; i < t->rows * t->columns; i++)
        free(t->cells[i].text);
    free(t->cells);
    free(t->here);
    free(t->title);
    free(t->over);
    free(t);
}

/* Columns are added before rows. Returns -1 if there are too many. */
int table_add_column(struct table *t, const char *name)
{
    if (t->columns == COLUMNS_MAX || t->rows > 0)
        return -1;
    t->names[t->columns] = table_check_memory(strdup(name));
    return t->columns++;
}

int table_add_row(struct table *t)
{
    size_t columns = (size_t)t->columns, rows = (size_t)t->rows;
    t->cells = table_check_memory(realloc(t->cells, sizeof(*t->cells) * columns * (rows + 1)));
    memset(&t->cells[rows * columns], 0, sizeof(*t->cells) * columns);
    for (size_t c = 0; c < columns; c++)
        t->cells[rows * columns + c].value = NAN;
    return t->rows++;
}

struct cell *table_cell(const struct table *t, int row, int column)
{
    return &t->cells[row * t->columns + column];
}

void table_set_number(struct table *t, int row, int column, double value)
{
    struct cell *c = table_cell(t, row, column);
    c->value = value;
    c->samples = 0;
    if (!isnan(value))
        c->sample[c->samples++] = value;
}

void table_set_text(struct table *t, int row, int column, const char *text)
{
    struct cell *c = table_cell(t, row, column);
    free(c->text);
    c->text = table_check_memory(strdup(text));
}

int table_find_row(struct table *t, const char *text, double number)
{
    for (int r = 0; r < t->rows; r++) {
        const struct cell *c = table_cell(t, r, 0);
        if (text ? c->text && strcmp(c->text, text) == 0 : !c->text && c->value == number)
            return r;
    }
    int row = table_add_row(t);
    if (text)
        table_set_text(t, row, 0, text);
    else
        table_set_number(t, row, 0, number);
    return row;
}

int table_find_column(const struct table *t, const char *name)
{
    for (int c = 0; c < t->columns; c++)
        if (strcmp(t->names[c], name) == 0)
            return c;
    for (int c = 0; c < t->columns; c++)
        if (strncmp(t->names[c], name, strlen(name)) == 0)
            return c;
    return -1;
}

static bool cells_have_same_name(const struct cell *a, const struct cell *b)
{
    if (a->text || b->text)
        return a->text && b->text && strcmp(a->text, b->text) == 0;
    return a->value == b->value;
}

void table_merge(struct table *t, const struct table *more)
{
    for (int r = 0; r < t->rows && r < more->rows; r++) {
        if (!cells_have_same_name(table_cell(t, r, 0), table_cell(more, r, 0)))
            continue;
        for (int c = 1; c < t->columns && c < more->columns; c++) {
            struct cell *to = table_cell(t, r, c);
            const struct cell *from = table_cell(more, r, c);
            for (int i = 0; i < from->samples && to->samples < ROUNDS_MAX; i++)
                to->sample[to->samples++] = from->sample[i];
        }
    }
}

static int compare_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void table_compute_values(struct table *t, enum better better)
{
    for (int r = 0; r < t->rows; r++)
        for (int c = 1; c < t->columns; c++) {
            struct cell *cell = table_cell(t, r, c);
            double sorted[ROUNDS_MAX];
            int n = cell->samples;
            if (n == 0)
                continue;
            memcpy(sorted, cell->sample, sizeof(sorted));
            qsort(sorted, (size_t)n, sizeof(sorted[0]), compare_by_value);
            cell->value = better == BETTER_LOWER    ? sorted[0]
                          : better == BETTER_HIGHER ? sorted[n - 1]
                                                    : (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
        }
}

void table_print_cell(const struct cell *c, char out[64])
{
    double size = fabs(c->value);
    if (c->text)
        snprintf(out, 64, "%s", c->text);
    else if (isnan(c->value))
        snprintf(out, 64, "-");
    else if (c->value == floor(c->value) && size < 1e9)
        snprintf(out, 64, "%.0f", c->value);
    else
        snprintf(out, 64, "%.*f", size < 1 ? 3 : size < 100 ? 2 : 0, c->value);
}
