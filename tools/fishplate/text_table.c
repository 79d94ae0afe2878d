/* text_table.c: prints sections and tables of a text report.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "text_table.h"

#include <stdarg.h>

void text_section(FILE *out, const char *title, const char *about)
{
    fprintf(out, "\n%s\n  %s\n", title, about);
}

static void print_padded(const struct text_table *t, const char *text)
{
    const struct text_column *c = &t->columns[t->at];
    const bool last = !c[1].name;
    fprintf(t->out, "%s%*s%s", t->at ? " " : "  ", last && c->width < 0 ? 0 : c->width, text,
            last ? "\n" : "");
}

void text_table_head(struct text_table *t, const struct text_column *columns)
{
    t->columns = columns;
    for (t->at = 0; t->columns[t->at].name; t->at++)
        print_padded(t, t->columns[t->at].name);
    t->at = 0;
}

void text_cell(struct text_table *t, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    print_padded(t, text);
    if (!t->columns[++t->at].name)
        t->at = 0;
}
