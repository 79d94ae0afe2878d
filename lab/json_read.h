/* json_read.h: parses JSON into a tree of values. Malformed input is rejected as a whole.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_JSON_READ_H
#define FP_LAB_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

enum value_kind { VALUE_NULL, VALUE_BOOL, VALUE_NUMBER, VALUE_STRING, VALUE_ARRAY, VALUE_OBJECT };

struct value {
    enum value_kind kind;
    double number;       /* VALUE_NUMBER; VALUE_BOOL: 0 or 1 */
    char *text;          /* VALUE_STRING */
    char *key;           /* key of a member of an object; NULL in an array */
    struct value *first; /* members of an array or object */
    struct value *next;
};

/* Returns NULL if the text is not one JSON document, is nested too deeply, or memory runs out. */
struct value *value_parse(const char *text, size_t len);
struct value *value_read(const char *path); /* parses a file */
void value_free(struct value *v);

/* All functions accept NULL, and return NULL, the default or "" for a missing value or one of another type. */
const struct value *value_get(const struct value *object, const char *key);
const struct value *value_first_element(const struct value *object, const char *key);
const char *value_text(const struct value *object, const char *key);
double value_number(const struct value *object, const char *key, double missing);
bool value_is_true(const struct value *object, const char *key);

#endif
