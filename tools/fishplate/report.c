/* report.c: see report.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <stdarg.h>

#include "html.h"

enum { TEXT_MAX = 1024 };

void report_section(struct report *r, const char *title, const char *about)
{
    if (r->html)
        html_section(r->out, title, about);
    else
        fprintf(r->out, "\n%s\n  %s\n", title, about);
}

void report_section_end(struct report *r)
{
    if (r->html)
        html_section_end(r->out);
}

/* True if the column is printed; columns of width 0 exist in HTML only. */
static bool is_shown(const struct report *r, const struct report_column *c)
{
    return r->html || c->width != 0;
}

static void print_padded(const struct report *r, const struct report_column *c, const char *text)
{
    const bool last = !c[1].name;
    fprintf(r->out, "%s%*s", r->at ? " " : "  ", last && c->width < 0 ? 0 : c->width, text);
}

void report_table(struct report *r, const struct report_column *columns)
{
    r->columns = columns;
    if (r->html)
        fputs("<div class=\"wide\" tabindex=\"0\"><table>\n<tr>", r->out);
    for (r->at = 0; columns[r->at].name; r->at++)
        if (r->html)
            html_put(r->out, "th", NULL, "%s", columns[r->at].name);
        else if (is_shown(r, &columns[r->at]))
            print_padded(r, &columns[r->at], columns[r->at].name);
    fputs(r->html ? "</tr>\n" : "\n", r->out);
    r->at = 0;
}

void report_table_end(struct report *r)
{
    r->columns = NULL;
    if (r->html)
        html_table_end(r->out);
}

static void report_end_row(struct report *r)
{
    if (r->columns[r->at].name)
        return;
    fputs(r->html ? "</tr>\n" : "\n", r->out);
    r->at = 0;
}

static void report_begin_row(const struct report *r)
{
    if (r->html && r->at == 0)
        fputs("<tr>", r->out);
}

void report_cell(struct report *r, const char *style, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report_begin_row(r);
    if (r->html)
        html_put(r->out, "td", style, "%s", text);
    else if (is_shown(r, &r->columns[r->at]))
        print_padded(r, &r->columns[r->at], text);
    r->at++;
    report_end_row(r);
}

void report_cell_html(struct report *r, const char *format, ...)
{
    va_list args;
    report_begin_row(r);
    if (r->html) {
        fputs("<td>", r->out);
        va_start(args, format);
        vfprintf(r->out, format, args);
        va_end(args);
        fputs("</td>", r->out);
    }
    r->at++;
    report_end_row(r);
}

void report_line(struct report *r, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (r->html)
        html_put(r->out, "p", NULL, "%s", text);
    else
        fprintf(r->out, "  %s\n", text);
}
