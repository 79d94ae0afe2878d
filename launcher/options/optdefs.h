/* optdefs.h: the table of options, one line each. Parsing, --help, the suggestion for a mistyped name, shell
 * completion and the manual page are made from it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_OPTDEFS_H
#define FP_LAUNCHER_OPTDEFS_H

#include "options/options.h"

/* ARG_MAYBE: the value is optional and follows an equals sign, since the next word may be the program. */
enum opt_arg { ARG_NONE, ARG_ONE, ARG_NAME_VALUE, ARG_MAYBE };

/* State of the parser: the options parsed so far and the option being stored. */
struct opt_parse {
    struct options *o;
    struct app_spec *app;
    bool config; /* a -configfile was read */
    const struct optdef *def;
    const char *name, *value; /* as the user wrote them, without dashes; value NULL: none */
};

struct optdef {
    const char *names; /* without dashes, separated by |; the first is the one shown */
    enum opt_arg arg;
    const char *metavar;
    const char *help; /* NULL: accepted but not shown */
    void (*apply)(struct opt_parse *p);
    const char *values; /* for shell completion: words, @file or @dir; NULL: no completion */
    size_t member;      /* offset of the member of struct options in which `apply` stores the value */
    long min, max;      /* limits of a number */
};

extern const struct optdef optdefs[];
extern const unsigned noptdefs;

/* Options of other launchers with their equivalents; not in --help. */
extern const struct optdef habits[];
extern const unsigned nhabits;

/* Finds an option by name (without dashes) in both tables; NULL if it does not exist. */
const struct optdef *optdef_find(const char *name);

/* Parses a number; ends mpiexec with a message if `value` is not a number from min to max. */
long opt_number(const struct opt_parse *p, const char *value, long min, long max);

/* Handles -configfile (options.c). */
void options_configfile(struct opt_parse *p);

/* Returns the option name most similar to a mistyped one; NULL if none is similar. */
const char *optdef_nearest(const char *name);

#endif
