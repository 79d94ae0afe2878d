/* parse.c: parses operations, algorithms and options of FISHPLATE_COLL (parse.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/select/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/nearest.h"
#include "base/tunable.h"

#define BY_NODE "node+" /* prefix of a barrier algorithm that only the leaders of nodes use */

static int unknown_kind(const char *word)
{
    struct nearest best = nearest_start_search(word);
    for (int k = 0; k < COLL_KINDS; k++)
        nearest_compare_candidate(&best, coll_kind_name((enum coll_kind)k));
    if (best.word)
        return err_set(MPI_ERR_ARG, "FISHPLATE_COLL: there is no operation '%s'; did you mean '%s'?", word,
                       best.word);
    return err_set(MPI_ERR_ARG, "FISHPLATE_COLL: there is no operation '%s'", word);
}

static int unknown_algorithm(enum coll_kind kind, const char *word)
{
    char names[256] = "";
    struct nearest best = nearest_start_search(word);
    for (size_t i = 0; i < algorithms_count(); i++) {
        const struct coll_algorithm *a = algorithms_get(i);
        if (a->kind != kind || (a->needs & NEED_INTER))
            continue;
        nearest_compare_candidate(&best, a->name);
        if (strlen(names) + strlen(a->name) + 3 < sizeof(names)) {
            strcat(names, names[0] ? ", " : "");
            strcat(names, a->name);
        }
    }
    if (best.word)
        return err_set(MPI_ERR_ARG, "FISHPLATE_COLL: %s has no algorithm '%s'; did you mean '%s'?",
                       coll_kind_name(kind), word, best.word);
    return err_set(MPI_ERR_ARG, "FISHPLATE_COLL: %s has no algorithm '%s'; it has %s", coll_kind_name(kind),
                   word, names);
}

bool coll_parse_size(const char *text, uint64_t *out)
{
    int64_t value;
    if (!isdigit((unsigned char)*text) || !tunable_parse_number(text, true, &value))
        return false;
    *out = (uint64_t)value;
    return true;
}

static int unknown_option(const struct coll_algorithm *a, const char *word)
{
    char names[128];
    int used = snprintf(names, sizeof(names), "segment, window");
    for (int i = 0; i < COLL_PARAMETERS && a->parameter[i].name; i++)
        used += snprintf(names + used, sizeof(names) - (size_t)used, ", %s", a->parameter[i].name);
    return err_set(MPI_ERR_ARG, "FISHPLATE_COLL: %s=%s has no option '%s'; the options are %s",
                   coll_kind_name(a->kind), a->name, word, names);
}

static int parse_parameter(const char *word, uint64_t value, struct coll_choice *choice)
{
    const struct coll_algorithm *a = choice->algorithm;
    for (int i = 0; i < COLL_PARAMETERS && a->parameter[i].name; i++) {
        const struct coll_parameter *p = &a->parameter[i];
        if (strcmp(word, p->name) != 0)
            continue;
        if (value < (uint64_t)p->min || value > (uint64_t)p->max)
            return err_set(MPI_ERR_ARG, "FISHPLATE_COLL: %s of %s=%s must be from %d to %d, not %llu", word,
                           coll_kind_name(a->kind), a->name, p->min, p->max, (unsigned long long)value);
        choice->parameter[i] = (int)value;
        return 0;
    }
    return unknown_option(a, word);
}

static int parse_option(char *text, struct coll_choice *choice)
{
    char *equals = strchr(text, '=');
    uint64_t value;
    if (equals)
        *equals = '\0';
    if (!equals || !coll_parse_size(equals + 1, &value))
        return err_set(MPI_ERR_ARG, "FISHPLATE_COLL: '%s' needs a number, as in segment=32k", text);
    if (strcmp(text, "segment") == 0)
        choice->segment = value;
    else if (strcmp(text, "window") == 0)
        choice->window = (int)MIN(value, 1u << 20);
    else
        return parse_parameter(text, value, choice);
    return 0;
}

int coll_parse_kind(const char *word, enum coll_kind *out)
{
    for (int kind = 0; kind < COLL_KINDS; kind++)
        if (strcmp(word, coll_kind_name((enum coll_kind)kind)) == 0) {
            *out = (enum coll_kind)kind;
            return 0;
        }
    return unknown_kind(word);
}

int coll_parse(enum coll_kind kind, char *text, struct coll_choice *out)
{
    char *save = NULL;
    const char *name = strtok_r(text, ":", &save);
    const bool by_node = kind == COLL_BARRIER && name && strncmp(name, BY_NODE, strlen(BY_NODE)) == 0;
    if (by_node)
        name += strlen(BY_NODE);
    struct coll_choice choice = {
        .algorithm = name ? algorithm_find(kind, name) : NULL, .named = true, .by_node = by_node};
    if (!choice.algorithm)
        return unknown_algorithm(kind, name ? name : "");
    if (by_node && !choice.algorithm->generate)
        return err_set(MPI_ERR_ARG,
                       "FISHPLATE_COLL: barrier=%s%s: only an algorithm by messages can follow " BY_NODE,
                       BY_NODE, name);
    for (char *option = strtok_r(NULL, ":", &save); option; option = strtok_r(NULL, ":", &save)) {
        int rc = parse_option(option, &choice);
        if (rc)
            return rc;
    }
    *out = choice;
    return 0;
}
