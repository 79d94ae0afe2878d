/* optdefs.h: the table of options, one line each. Parsing, --help, the suggestion for a mistyped name, shell
 * completion and the manual page are made from it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_OPTDEFS_H
#define FP_LAUNCHER_OPTDEFS_H

#include "options/options.h"

/* ARG_MAYBE: a value only with an equals sign, since the next word may be the program. */
enum opt_arg { ARG_NONE, ARG_ONE, ARG_NAME_VALUE, ARG_MAYBE };

/* The options being filled in. */
struct opt_parse {
    struct options *o;
    struct app_spec *app;
    bool config; /* -configfile was given */
};

struct optdef {
    const char *names; /* without dashes, separated by |; the first is the one shown */
    enum opt_arg arg;
    const char *metavar;
    const char *help; /* NULL: accepted but not shown */
    void (*apply)(struct opt_parse *p, const char *name, const char *value);
    const char *values; /* for completion: words, @file or @dir; NULL: nothing is known */
};

extern const struct optdef optdefs[];
extern const unsigned noptdefs;

/* Options of other launchers with their equivalents; not in --help. */
extern const struct optdef habits[];
extern const unsigned nhabits;

/* The definition with that name (without dashes), of either table; NULL when there is none. */
const struct optdef *optdef_find(const char *name);

/* Values, or the end of mpiexec with a sentence: a whole number, the index of one of several words. */
long opt_number(const char *name, const char *value, long min, long max);
int opt_choice(const char *name, const char *value, const char *const *words, int n);

/* options.c: reads a file of programs. */
void options_configfile(struct opt_parse *p, const char *name, const char *value);

/* The name in the table most similar to a mistyped one, or NULL if none is. */
const char *optdef_nearest(const char *name);

#endif
