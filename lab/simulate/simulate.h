/* simulate.h: what all of `fishplate-lab sim` share: their options, lists of numbers, machines.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_SIMULATE_H
#define FP_LAB_SIMULATE_H

#include "lab/sim/machine.h"

#include "coll/sched/algorithm.h"

int command_sim(int argc, char **argv); /* `fishplate-lab sim`, and its own sub-commands: */
int command_sim_rails(int argc, char **argv);
int command_sim_flow(int argc, char **argv);
int command_sim_memory(int argc, char **argv);
int command_sim_multicast(int argc, char **argv);
int command_sim_replay(int argc, char **argv);
int command_sim_validate(int argc, char **argv);

enum { SIM_LIST_MAX = 32 };

/* A sub-command of `fishplate-lab sim`, "sim replay", and what reads its options. */
struct sim_command {
    const char *name;
    void *options;
    bool *help, *json;
    bool (*word)(void *options, const char *text); /* an option without a value, or an operand; NULL: none */
    bool (*value)(void *options, const char *name, const char *value);
    const char *stray; /* what is said of another operand; NULL: that it is not an option */
};

/* 0, or the exit status after a sentence. */
int sim_parse(const struct sim_command *c, int argc, char **argv);

/* Prints "'about' what; see --help." and returns the exit status. */
int sim_complain(const char *command, const char *what, const char *about);

/* "16,1k": at most SIM_LIST_MAX numbers. */
bool sim_list(const char *text, size_t *list, int *count);

/* The name of a preset; or a file: lines "link_rate 25", or the JSON of `fishplate-lab logp`. False after a sentence. */
bool sim_machine(struct machine *m, const char *what);

/* The parameters of two virtual nodes of this machine, measured now. False after a sentence. */
bool sim_fit_here(struct machine *m);

/* The algorithm that the library's rules take between nodes, unless FISHPLATE_COLL sets another; NULL: none. */
const struct coll_algorithm *sim_chosen(enum coll_kind kind, int ranks, size_t bytes);

#endif
