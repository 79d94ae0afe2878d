/*
 * The table of options: one line each. From it come parsing, --help and the suggestion for a mistyped name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FP_LAUNCHER_OPTDEFS_H
#define FP_LAUNCHER_OPTDEFS_H

struct options;
struct app_spec;

enum opt_arg { ARG_NONE, ARG_ONE, ARG_NAME_VALUE };

struct opt_parse; /* options.c */

struct optdef {
    const char *names; /* without dashes, separated by |; the first is the one shown */
    enum opt_arg arg;
    const char *metavar;
    const char *help; /* NULL: accepted but not shown */
    void (*apply)(struct opt_parse *p, const char *name, const char *value);
};

extern const struct optdef optdefs[];
extern const unsigned noptdefs;

/* Is `name` (without dashes) one of the table's line? */
int optdef_find(const char *name);

/* The name in the table nearest to a mistyped one, or NULL when none is near. */
const char *optdef_nearest(const char *name);

#endif
