/* html.c: writes elements, tables and escaped text of HTML pages (html.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "html.h"

#include <stdarg.h>

void html_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '&')
            fputs("&amp;", out);
        else if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else
            fputc(c < ' ' && c != '\n' && c != '\t' ? ' ' : c, out);
    }
}

void html_put(FILE *out, const char *tag, const char *style, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (style)
        fprintf(out, "<%s class=\"%s\">", tag, style);
    else
        fprintf(out, "<%s>", tag);
    html_text(out, text);
    fprintf(out, "</%s>", tag);
}

void html_section(FILE *out, const char *title, const char *about)
{
    fputs("<section>\n", out);
    html_put(out, "h2", NULL, "%s", title);
    html_put(out, "p", NULL, "%s", about);
    fputc('\n', out);
}

void html_section_end(FILE *out)
{
    fputs("</section>\n", out);
}

void html_head_row(FILE *out, const char *const *names)
{
    fputs("<div class=\"wide\" tabindex=\"0\"><table>\n<tr>", out);
    for (; *names; names++)
        html_put(out, "th", NULL, "%s", *names);
    fputs("</tr>\n", out);
}

void html_table_end(FILE *out)
{
    fputs("</table></div>\n", out);
}
