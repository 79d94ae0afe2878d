/* info_wrap.c: paragraphs of `fishplate info` in the width of a page.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "info.h"

enum { PAGE_WIDTH = 110 };

void info_wrap(const char *text, int indent)
{
    while (*text) {
        size_t room = (size_t)(PAGE_WIDTH - indent), len = strlen(text);
        if (len > room) {
            for (len = room; len > 0 && text[len] != ' ';)
                len--;
            if (len == 0)
                len = strcspn(text, " ");
        }
        printf("%*s%.*s\n", indent, "", (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
}
