/* sim_words.h: words of the command line that all of `fishplate sim` understands: lists of numbers, machines.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_SIM_WORDS_H
#define FP_TOOLS_SIM_WORDS_H

#include "../../sim/machine.h"

#include "coll/algorithm.h"

enum { SIM_LIST_MAX = 32 };

/* A sub-command of `fishplate sim`, "sim replay", and what reads its options. */
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

/* The name of a preset; or a file: lines "link_rate 25", or the JSON of `fishplate bench logp`. False after a sentence. */
bool sim_machine(struct machine *m, const char *what);

/* The parameters of two virtual nodes of this machine, measured now. False after a sentence. */
bool sim_fit_here(struct machine *m);

/* The algorithm that the library's rules take between nodes, as long as no FISHPLATE_COLL says otherwise; NULL: none. */
const struct coll_algorithm *sim_chosen(enum coll_kind kind, int ranks, size_t bytes);

#endif
