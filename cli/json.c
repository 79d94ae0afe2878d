/* json.c: writes objects, arrays, strings and numbers, and counts open levels (json.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void put_string(struct json *j, const char *text)
{
    fputc('"', j->out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(j->out, "\\%c", c);
        else if (c < ' ' || c == '<') /* in a web page, "</script>" would end the JSON */
            fprintf(j->out, "\\u%04x", c);
        else
            fputc(c, j->out);
    }
    fputc('"', j->out);
}

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

static void put_members(struct json *j, const char *format, va_list args)
{
    while (*format) {
        char key[64];
        const size_t length = strcspn(format, "=");
        snprintf(key, sizeof(key), "%.*s", (int)length, format);
        format += length + 2; /* skips "=%" */
        if (*format == 's')
            json_string(j, key, va_arg(args, const char *));
        else if (*format == 'g')
            json_real(j, key, va_arg(args, double));
        else if (*format == 'd')
            json_int(j, key, va_arg(args, int));
        else if (*format == 'u')
            json_int(j, key, va_arg(args, unsigned));
        else
            json_int(j, key, va_arg(args, long long));
        format += strcspn(format, " ");
        format += *format == ' ';
    }
}

void json_members(struct json *j, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_members(j, format, args);
    va_end(args);
}

void json_record(struct json *j, const char *key, const char *format, ...)
{
    va_list args;
    json_object(j, key);
    va_start(args, format);
    put_members(j, format, args);
    va_end(args);
    json_end(j);
}
