/* optdefs.h: the table of options, one line each. Parsing, --help, the suggestion for a mistyped name, shell
 * completion and the manual page are made from it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_OPTDEFS_H
#define FP_LAUNCHER_OPTDEFS_H

#include "options/options.h"

/* ARG_MAYBE: a value only with an equals sign, since the next word may be the program. */
enum opt_arg { ARG_NONE, ARG_ONE, ARG_NAME_VALUE, ARG_MAYBE };

/* The options being filled in, and the option of the command line that is being stored. */
struct opt_parse {
    struct options *o;
    struct app_spec *app;
    bool config; /* -configfile was given */
    const struct optdef *def;
    const char *name, *value; /* as the user wrote them, without dashes; value NULL: none */
};

struct optdef {
    const char *names; /* without dashes, separated by |; the first is the one shown */
    enum opt_arg arg;
    const char *metavar;
    const char *help; /* NULL: accepted but not shown */
    void (*apply)(struct opt_parse *p);
    const char *values; /* for completion: words, @file or @dir; NULL: nothing is known */
    size_t member;      /* offset of the member of struct options in which `apply` stores the value */
    long min, max;      /* limits of a number */
};

extern const struct optdef optdefs[];
extern const unsigned noptdefs;

/* Options of other launchers with their equivalents; not in --help. */
extern const struct optdef habits[];
extern const unsigned nhabits;

/* The definition with that name (without dashes), of either table; NULL when there is none. */
const struct optdef *optdef_find(const char *name);

/* The number that `value` is; ends mpiexec with a sentence about the option if it is none between these limits. */
long opt_number(const struct opt_parse *p, const char *value, long min, long max);

/* options.c: reads a file of programs. */
void options_configfile(struct opt_parse *p);

/* The name in the table most similar to a mistyped one, or NULL if none is. */
const char *optdef_nearest(const char *name);

#endif
