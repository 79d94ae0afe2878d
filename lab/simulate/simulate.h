/* simulate.h: functions that all commands of `fishplate-lab sim` share: options, lists of numbers,
 * machines.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_SIMULATE_H
#define FP_LAB_SIMULATE_H

#include "lab/sim/machine.h"

#include "coll/sched/algorithm.h"

/* `fishplate-lab sim` and its sub-commands. */
int command_sim(int argc, char **argv);
int command_sim_rails(int argc, char **argv);
int command_sim_flow(int argc, char **argv);
int command_sim_memory(int argc, char **argv);
int command_sim_multicast(int argc, char **argv);
int command_sim_replay(int argc, char **argv);
int command_sim_validate(int argc, char **argv);

enum { SIM_LIST_MAX = 32 };

/* A sub-command of `fishplate-lab sim` ("sim replay") and the functions that read its options. */
struct sim_command {
    const char *name;
    void *options;
    bool *help, *json;
    /* handles an option without a value, or an operand; NULL: none */
    bool (*word)(void *options, const char *text);
    bool (*value)(void *options, const char *name, const char *value);
    const char *stray; /* message about an unknown operand; NULL: it is reported as an unknown option */
};

/* Returns 0, or the exit status after an error message. */
int sim_parse(const struct sim_command *c, int argc, char **argv);

/* Prints "'about' what; see --help." and returns the exit status. */
int sim_report_misuse(const char *command, const char *what, const char *about);

/* "16,1k": at most SIM_LIST_MAX numbers. */
bool sim_parse_list(const char *text, size_t *list, int *count);

/* Argument of --machine: the name of a preset, or a file with lines "link_rate 25" or with the JSON of
 * `fishplate-lab logp`. On failure prints an error and returns false. */
bool sim_read_machine(struct machine *m, const char *what);

/* Measures the parameters of two virtual nodes of this machine. On failure prints an error and returns
 * false. */
bool sim_fit_here(struct machine *m);

/* The algorithm that the library's rules select between nodes, unless FISHPLATE_COLL sets another; NULL:
 * none. */
const struct coll_algorithm *sim_find_selected(enum coll_kind kind, int ranks, size_t bytes);

#endif
