/* html.h: writes HTML that is also well-formed XML.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_HTML_H
#define FP_LAB_HTML_H

#include <stdio.h>

/* Writes text with &, <, > and " escaped; bytes that XML does not allow become blanks. */
void html_text(FILE *out, const char *text);

/* Writes <tag class="style">text</tag>; the printf-formatted text is escaped. style may be NULL. */
void html_put(FILE *out, const char *tag, const char *style, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Begins a section of the page with a title and a sentence about it. */
void html_section(FILE *out, const char *title, const char *about);
void html_section_end(FILE *out);

/* Begins a table with these headings; the list ends with NULL. A wide table scrolls horizontally under a
 * fixed first column. */
void html_head_row(FILE *out, const char *const *names);
void html_table_end(FILE *out);

#endif
