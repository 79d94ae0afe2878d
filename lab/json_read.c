/* json_read.c: a recursive parser of JSON with a limit of depth, and access to its values (json_read.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "json_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32, NUMBER_MAX = 64 };

struct reader {
    const char *at, *end;
};

static struct value *read_value(struct reader *r, int depth);

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

static bool json_accept_char(struct reader *r, char c)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool accept_word(struct reader *r, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

/* Decodes the four digits after \u to UTF-8. Surrogates become a question mark: this project writes none. */
static bool read_unicode(struct reader *r, char **out)
{
    unsigned code = 0;
    if (r->end - r->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef", c = *r->at++;
        const char *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;
        if (!found)
            return false;
        code = code * 16 + (unsigned)(found - digits);
    }
    if (code == 0 || (code >= 0xd800 && code < 0xe000))
        code = '?';
    if (code < 0x80) {
        *(*out)++ = (char)code;
    } else if (code < 0x800) {
        *(*out)++ = (char)(0xc0 | code >> 6);
        *(*out)++ = (char)(0x80 | (code & 0x3f));
    } else {
        *(*out)++ = (char)(0xe0 | code >> 12);
        *(*out)++ = (char)(0x80 | (code >> 6 & 0x3f));
        *(*out)++ = (char)(0x80 | (code & 0x3f));
    }
    return true;
}

static bool read_escape(struct reader *r, char **out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end)
        return false;
    char c = *r->at++;
    if (c == 'u')
        return read_unicode(r, out);
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        return false;
    *(*out)++ = to[found - from];
    return true;
}

/* Called after the opening quote. Decodes in place: an escape is never shorter than the character it encodes. */
static char *read_string(struct reader *r)
{
    const char *close = r->at;
    while (close < r->end && *close != '"')
        close += *close == '\\' && close + 1 < r->end ? 2 : 1;
    if (close >= r->end)
        return NULL;
    char *text = malloc((size_t)(close - r->at) + 1), *out = text;
    if (!text)
        return NULL;
    while (r->at < close) {
        unsigned char c = (unsigned char)*r->at++;
        if (c < ' ' || (c == '\\' && !read_escape(r, &out))) {
            free(text);
            return NULL;
        }
        if (c != '\\')
            *out++ = (char)c;
    }
    *out = 0;
    r->at = close + 1;
    return text;
}

static bool read_number(struct reader *r, double *out)
{
    char text[NUMBER_MAX], *end;
    size_t len = 0;
    while (r->at + len < r->end && len < sizeof(text) - 1 && r->at[len] &&
           strchr("+-.eE0123456789", r->at[len]))
        len++;
    memcpy(text, r->at, len);
    text[len] = 0;
    *out = strtod(text, &end);
    r->at += len;
    return len > 0 && *end == 0 && isfinite(*out);
}

/* Called after the opening bracket: reads the members up to the closing bracket. */
static bool read_members(struct reader *r, struct value *v, char closing, int depth)
{
    struct value **last = &v->first;
    if (json_accept_char(r, closing))
        return true;
    do {
        char *key = NULL;
        if (v->kind == VALUE_OBJECT &&
            (!json_accept_char(r, '"') || !(key = read_string(r)) || !json_accept_char(r, ':'))) {
            free(key);
            return false;
        }
        *last = read_value(r, depth + 1);
        if (!*last) {
            free(key);
            return false;
        }
        (*last)->key = key;
        last = &(*last)->next;
    } while (json_accept_char(r, ','));
    return json_accept_char(r, closing);
}

static bool read_any_value(struct reader *r, struct value *v, int depth)
{
    if (json_accept_char(r, '"')) {
        v->kind = VALUE_STRING;
        v->text = read_string(r);
        return v->text != NULL;
    }
    if (json_accept_char(r, '{')) {
        v->kind = VALUE_OBJECT;
        return depth < DEPTH_MAX && read_members(r, v, '}', depth);
    }
    if (json_accept_char(r, '[')) {
        v->kind = VALUE_ARRAY;
        return depth < DEPTH_MAX && read_members(r, v, ']', depth);
    }
    if (accept_word(r, "null"))
        return true;
    v->kind = VALUE_BOOL;
    if (accept_word(r, "false"))
        return true;
    v->number = 1;
    if (accept_word(r, "true"))
        return true;
    v->kind = VALUE_NUMBER;
    return read_number(r, &v->number);
}

static struct value *read_value(struct reader *r, int depth)
{
    struct value *v = calloc(1, sizeof(*v));
    if (v && read_any_value(r, v, depth))
        return v;
    value_free(v);
    return NULL;
}

struct value *value_parse(const char *text, size_t len)
{
    struct reader r = {text, text + len};
    struct value *v = read_value(&r, 0);
    skip_blanks(&r);
    if (v && r.at == r.end)
        return v;
    value_free(v);
    return NULL;
}

struct value *value_read(const char *path)
{
    FILE *in = fopen(path, "r");
    char *text = NULL;
    size_t len = 0, room = 0, n;
    if (!in)
        return NULL;
    do {
        if (len == room) {
            char *more = realloc(text, room = room ? 2 * room : 65536);
            if (!more)
                break;
            text = more;
        }
        n = fread(text + len, 1, room - len, in);
        len += n;
    } while (n > 0);
    struct value *v = text && feof(in) ? value_parse(text, len) : NULL;
    fclose(in);
    free(text);
    return v;
}

void value_free(struct value *v)
{
    while (v) {
        struct value *next = v->next;
        value_free(v->first);
        free(v->text);
        free(v->key);
        free(v);
        v = next;
    }
}

const struct value *value_get(const struct value *object, const char *key)
{
    for (const struct value *v = object ? object->first : NULL; v; v = v->next)
        if (v->key && strcmp(v->key, key) == 0)
            return v;
    return NULL;
}

const struct value *value_first_element(const struct value *object, const char *key)
{
    const struct value *v = value_get(object, key);
    return v ? v->first : NULL;
}

const char *value_text(const struct value *object, const char *key)
{
    const struct value *v = value_get(object, key);
    return v && v->kind == VALUE_STRING ? v->text : "";
}

double value_number(const struct value *object, const char *key, double missing)
{
    const struct value *v = value_get(object, key);
    return v && v->kind == VALUE_NUMBER ? v->number : missing;
}

bool value_is_true(const struct value *object, const char *key)
{
    const struct value *v = value_get(object, key);
    return v && v->kind == VALUE_BOOL && v->number != 0;
}
