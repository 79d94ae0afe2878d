/* settings.h: the settings of SOFTIB_FABRIC: their names, the fields in which their values are stored, and the
 * values that they accept. text.c reads the text and decides to which ports a setting applies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SETTINGS_H
#define SOFTIB_SETTINGS_H

#include "base/nearest.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum setting_scope {
    SETTING_OF_SIZES,  /* the whole fabric; must precede settings of ports in the text */
    SETTING_OF_FABRIC, /* the whole fabric */
    SETTING_OF_PORTS,  /* each port in scope */
};

struct setting {
    const char *name;
    enum setting_scope scope;
    size_t at, size; /* of the field in struct fabric or struct fab_port */
    bool (*parse)(const struct setting *s, const char *value, void *field);
    uint64_t low, high;    /* bounds of a number */
    const char *choice[2]; /* the values 0 and 1 of a setting with two values */
    const char *forbidden; /* characters that a name cannot have */
    const char *expected;  /* description of the values for error messages */
};

/* The feature list `without=`: its values are names of features. */
#define SETTING_WITHOUT "without"

const struct setting *setting_find(const char *name); /* NULL: there is none */
/* Stores the value into the setting's field of this struct fabric or struct fab_port. False: a bad value. */
bool setting_store(const struct setting *s, void *object, const char *value);
void setting_describe_values(const struct setting *s, char *out, size_t len);

/* The most similar name of a setting or of a feature; `word` is NULL if none is similar. */
struct nearest setting_find_nearest(const char *name);
struct nearest setting_find_nearest_feature(const char *name);

#endif
