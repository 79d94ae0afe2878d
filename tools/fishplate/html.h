/* html.h: small helpers that write HTML which is well-formed XML too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_HTML_H
#define FP_TOOLS_HTML_H

#include <stdio.h>

/* Text with &, <, > and " made harmless; bytes that XML does not allow become blanks. */
void html_text(FILE *out, const char *text);

/* <tag class="style">text</tag>, the text by printf's rules and made harmless; style may be NULL. */
void html_put(FILE *out, const char *tag, const char *style, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A card of the page with a title and a sentence about it. */
void html_section(FILE *out, const char *title, const char *about);
void html_section_end(FILE *out);

/* Begins a table with these headings; the list ends with NULL. It scrolls by itself where it is too wide, and its first
 * column stays. */
void html_head_row(FILE *out, const char *const *names);
void html_table_end(FILE *out);

#endif
