/* pmi_line.c: the PMI-1 line parser. Lines are not trusted: words are found by key, not by position, and
 * numbers must be decimal words in a range that the caller gives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "boot/pmi_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool pmi_line_parse(char *text, struct pmi_line *out)
{
    out->n = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < ' ' && *c != '\t')
            return false;
    for (char *p = text; *p;) {
        p += strspn(p, " \t");
        char *end = p + strcspn(p, " \t");
        bool last = *end == '\0';
        *end = '\0';
        char *eq = strchr(p, '=');
        if (eq == p)
            return false;
        if (eq) {
            if (out->n == PMI_WORDS_MAX)
                return false;
            *eq = '\0';
            out->word[out->n].key = p;
            out->word[out->n].value = eq + 1;
            out->n++;
        }
        p = last ? end : end + 1;
    }
    return true;
}

const char *pmi_line_get(const struct pmi_line *line, const char *key)
{
    for (unsigned i = 0; i < line->n; i++)
        if (strcmp(line->word[i].key, key) == 0)
            return line->word[i].value;
    return NULL;
}

bool pmi_line_int(const struct pmi_line *line, const char *key, long min, long max, long *out)
{
    const char *text = pmi_line_get(line, key);
    if (!text || !*text || strspn(text, "-0123456789") != strlen(text))
        return false;
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < min || value > max)
        return false;
    *out = value;
    return true;
}

static bool pmi_is_unescaped(unsigned char c)
{
    return c > ' ' && c < 0x7f && c != '%' && c != '=';
}

void pmi_escape(const char *text, char *out, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        size_t need = pmi_is_unescaped(*c) ? 1 : 3;
        if (n + need >= size)
            break;
        if (pmi_is_unescaped(*c)) {
            out[n++] = (char)*c;
        } else {
            out[n++] = '%';
            out[n++] = hex[*c >> 4];
            out[n++] = hex[*c & 15];
        }
    }
    out[n] = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static void pmi_unescape_text(char *text, bool all)
{
    char *out = text;
    for (const char *in = text; *in; in++) {
        unsigned char c = (unsigned char)*in;
        if (c == '%' && hex_digit(in[1]) >= 0 && hex_digit(in[2]) >= 0) {
            c = (unsigned char)(hex_digit(in[1]) * 16 + hex_digit(in[2]));
            in += 2;
        }
        *out++ = !all && ((c < ' ' && c != '\n') || c == 0x7f) ? '?' : (char)c;
    }
    *out = '\0';
}

void pmi_unescape(char *text)
{
    pmi_unescape_text(text, false);
}

void pmi_unescape_all(char *text)
{
    pmi_unescape_text(text, true);
}
