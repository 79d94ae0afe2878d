/* web_page.c: writes a report as a web page. The page loads nothing, and its colours follow the reader's
 * light or dark setting.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "web_page.h"

static const char style[] =
#include "web_page.css.inc"
    ;

static const char common_script[] =
#include "web_page.js.inc"
    ;

void web_page_begin(FILE *out)
{
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
            "<meta name=\"viewport\" content=\"width=device-width, "
            "initial-scale=1\"/>\n<title>fishplate</title>\n"
            "<style>\n%s\n</style>\n</head>\n<body>\n<main><p>This page needs JavaScript.</p></main>\n"
            "<script type=\"application/json\" id=\"data\">\n",
            style);
}

void web_page_end(FILE *out, const char *script)
{
    fprintf(out, "</script>\n<script>\n%s\n%s\nshow();\n</script>\n</body>\n</html>\n", common_script,
            script);
}
