/* json.h: writes JSON with the commas in the right places. A NULL key is for members of an array.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_CLI_JSON_H
#define FP_CLI_JSON_H

#include <stdbool.h>
#include <stdio.h>

enum { JSON_DEPTH_MAX = 16 };

struct json {
    FILE *out;
    int flat; /* members at this depth and below share a line; 0: each has its own */
    int depth;
    bool filled[JSON_DEPTH_MAX];  /* something was written at this depth */
    char closing[JSON_DEPTH_MAX]; /* closing bracket of this depth: '}' or ']' */
};

void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j);
void json_string(struct json *j, const char *key, const char *value);
void json_int(struct json *j, const char *key, long long value);
void json_real(struct json *j, const char *key, double value);           /* null if not finite */
void json_thousandths(struct json *j, const char *key, long long value); /* 1234 is written as 1.234 */
void json_bool(struct json *j, const char *key, bool value);

/* Several members of an object: "name=%s ranks=%d bytes=%lld seconds=%g". The conversions are %s, %d, %u, %lld, %llu, and %g
 * as json_real writes it; a blank ends each member. */
void json_members(struct json *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes an object with members like those of json_members(). */
void json_record(struct json *j, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
