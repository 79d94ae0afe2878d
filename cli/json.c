/* json.c: see json.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <math.h>
#include <stdlib.h>

static void put_string(struct json *j, const char *text)
{
    fputc('"', j->out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(j->out, "\\%c", c);
        else if (c < ' ')
            fprintf(j->out, "\\u%04x", c);
        else
            fputc(c, j->out);
    }
    fputc('"', j->out);
}

/* Writes comma, new line and key in front of a value. */
static void put_separator_and_key(struct json *j, const char *key)
{
    if (j->depth > 0) {
        if (j->filled[j->depth])
            fputc(',', j->out);
        if (j->flat && j->depth >= j->flat)
            fputs(j->filled[j->depth] ? " " : "", j->out);
        else
            fprintf(j->out, "\n%*s", j->depth, "");
    }
    j->filled[j->depth] = true;
    if (key) {
        put_string(j, key);
        fputs(": ", j->out);
    }
}

static void open_level(struct json *j, const char *key, char opening, char closing)
{
    put_separator_and_key(j, key);
    fputc(opening, j->out);
    j->depth++;
    j->filled[j->depth] = false;
    j->closing[j->depth] = closing;
}

void json_object(struct json *j, const char *key)
{
    open_level(j, key, '{', '}');
}

void json_array(struct json *j, const char *key)
{
    open_level(j, key, '[', ']');
}

void json_end(struct json *j)
{
    fputc(j->closing[j->depth--], j->out);
    if (j->depth == 0)
        fputc('\n', j->out);
}

void json_string(struct json *j, const char *key, const char *value)
{
    put_separator_and_key(j, key);
    put_string(j, value);
}

void json_int(struct json *j, const char *key, long long value)
{
    put_separator_and_key(j, key);
    fprintf(j->out, "%lld", value);
}

void json_real(struct json *j, const char *key, double value)
{
    put_separator_and_key(j, key);
    if (isfinite(value))
        fprintf(j->out, "%.9g", value);
    else
        fputs("null", j->out);
}

void json_thousandths(struct json *j, const char *key, long long value)
{
    put_separator_and_key(j, key);
    fprintf(j->out, "%s%lld.%03lld", value < 0 ? "-" : "", llabs(value) / 1000, llabs(value) % 1000);
}

void json_bool(struct json *j, const char *key, bool value)
{
    put_separator_and_key(j, key);
    fputs(value ? "true" : "false", j->out);
}
