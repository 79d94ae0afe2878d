/* html.c: see html.h.
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
