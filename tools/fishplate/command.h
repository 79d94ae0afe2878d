/* command.h: a sub-command of `fishplate` and of `fishplate-lab` is one line in the table of its main.c and
 * one file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_COMMAND_H
#define FP_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

struct command {
    const char *name, *summary;        /* summary NULL: a former name, which the help does not list */
    int (*run)(int argc, char **argv); /* argv[0] is the name; returns the exit status */
};

/* Runs the command that argv[1] names; "help" without arguments. The table ends with an empty entry. */
int command_run(const struct command *commands, const char *program, int argc, char **argv);
/* Prints the commands with their summaries, for the help text. */
void command_list(const struct command *commands);

int command_info(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_prof(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_why(int argc, char **argv);
int command_check(int argc, char **argv);
int command_tune(int argc, char **argv);

struct cli_option;

/* After cli_parse returned CLI_HELP or CLI_INVALID: prints the usage text if it is --help. Returns the
 * exit status. */
int command_usage(int result, const char *before, const struct cli_option *options, const char *after);

/* Returns whether a file could be written when the command ends; prints a message of `program` if not. True
 * for NULL and "-". */
bool command_can_write(const char *program, const char *path);

/* Writes a file by `write`. Returns false, after a message of `program`, if opening or writing failed. */
bool command_write_file(const char *program, const char *path, void (*write)(FILE *out, const void *arg),
                        const void *arg);

struct fishplate_inside;

/* Returns the library's table of internal functions; ends the process if the library has another version. */
const struct fishplate_inside *get_library_table(void);

#endif
