/* options.h: the options of a command as a table, one line each. A value is the next argument, or follows an equals sign.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_CLI_OPTIONS_H
#define FP_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_INT, CLI_REAL, CLI_SIZE, CLI_CHOICE, CLI_CALL };

struct cli_option {
    const char *names; /* "-h|--help": the last one is shown; the table ends with NULL */
    /* Value in the help text: "FILE", or an example "8,64k"; "[=S]": optional; NULL: no value. */
    const char *value;
    const char *help; /* NULL: the option is accepted, but not shown */
    enum cli_kind kind;
    size_t to; /* offset of the variable in the structure that is filled in */
    double minimum, maximum;
    const char *const *words;                  /* CLI_CHOICE: ends with NULL; the variable is the index */
    bool (*call)(void *to, const char *value); /* CLI_CALL: false if the value is invalid */
};

/* Lines of a table. S is the structure, `field` its member. */
#define CLI_FLAG_LINE(names, S, field, help)                              \
    {                                                                     \
        names, NULL, help, CLI_FLAG, offsetof(S, field), 0, 0, NULL, NULL \
    } /* type of `field`: bool */
#define CLI_TEXT_LINE(names, value, S, field, help)                        \
    {                                                                      \
        names, value, help, CLI_TEXT, offsetof(S, field), 0, 0, NULL, NULL \
    } /* type of `field`: const char * */
#define CLI_INT_LINE(names, value, S, field, minimum, maximum, help)                  \
    {                                                                                 \
        names, value, help, CLI_INT, offsetof(S, field), minimum, maximum, NULL, NULL \
    } /* type of `field`: int */
#define CLI_REAL_LINE(names, value, S, field, minimum, maximum, help)                  \
    {                                                                                  \
        names, value, help, CLI_REAL, offsetof(S, field), minimum, maximum, NULL, NULL \
    } /* type of `field`: double */
#define CLI_SIZE_LINE(names, value, S, field, minimum, maximum, help)                  \
    {                                                                                  \
        names, value, help, CLI_SIZE, offsetof(S, field), minimum, maximum, NULL, NULL \
    } /* type of `field`: size_t */
#define CLI_CHOICE_LINE(names, value, S, field, words, help)                  \
    {                                                                         \
        names, value, help, CLI_CHOICE, offsetof(S, field), 0, 0, words, NULL \
    } /* type of `field`: int */
#define CLI_CALL_LINE(names, value, call, help)           \
    {                                                     \
        names, value, help, CLI_CALL, 0, 0, 0, NULL, call \
    }
#define CLI_END                                         \
    {                                                   \
        NULL, NULL, NULL, CLI_FLAG, 0, 0, 0, NULL, NULL \
    }

struct cli {
    const char *program;              /* "fishplate tune": begins messages */
    const struct cli_option *options; /* --help and -h are recognised in addition */
    /* Handles a word that is no option; returns false if it is invalid. NULL: no operands. */
    bool (*operand)(void *to, const char *word);
    const char *operands; /* "a test": named in the message about an unknown word; NULL if operand is */
    bool stops;           /* stop at the first word that is no option; the caller parses the rest */
    bool silent;          /* no message: another rank prints it */
};

/* cli_parse() fills in `to` and returns the index of the first argument that was not read (after "--", or
 * where parsing stopped; else argc), CLI_HELP or CLI_INVALID. */
enum { CLI_HELP = -1, CLI_INVALID = -2 };
int cli_parse(const struct cli *c, int argc, char **argv, void *to);

/* Prints a paragraph from `column` on, in lines of at most 80 characters; `at` characters of the first line are printed already. */
void cli_print_text(const char *text, int at, int column, FILE *out);

/* Prints lines; one of more than 80 characters is wrapped, and continues below its second column if it has two. */
void cli_print_page(const char *text, FILE *out);

void cli_print_options(const struct cli_option *options, FILE *out);

#endif
