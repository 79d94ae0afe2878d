/* command.h: a sub-command of the `fishplate` tool is one line in main.c's table and one file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_COMMAND_H
#define FP_TOOLS_COMMAND_H

struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the name; returns the exit status */
};

int command_info(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_prof(int argc, char **argv);
int command_sim(int argc, char **argv);
int command_sim_rails(int argc, char **argv); /* `fishplate sim rails` */
int command_sim_flow(int argc, char **argv);
int command_sim_memory(int argc, char **argv);
int command_sim_multicast(int argc, char **argv);
int command_sim_replay(int argc, char **argv);
int command_sim_validate(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_why(int argc, char **argv);
int command_check(int argc, char **argv);
int command_tune(int argc, char **argv);

/* What is left of an option: `h` is --help. Prints the usage and returns the exit status. */
int command_usage(int option, const char *usage);

struct fishplate_inside;

/* The library's table, after checking that it is of our own version; does not return otherwise. */
const struct fishplate_inside *inside_of_library(void);

#endif
