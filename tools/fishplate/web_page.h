/* web_page.h: reports as self-contained web pages: the JSON of the report, and a script that renders it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_WEB_PAGE_H
#define FP_TOOLS_WEB_PAGE_H

#include <stdio.h>

/* The caller writes the JSON between the two calls. `script` defines render(data) (web_page.js). */
void web_page_begin(FILE *out);
void web_page_end(FILE *out, const char *script);

#endif
