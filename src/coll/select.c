/* select.c: applies the rules, and FISHPLATE_COLL over them, e.g. "allreduce=ring,bcast=chain:segment=32k".
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/select.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/nearest.h"
#include "base/tunable.h"

static TUNABLE_STRING(
    coll_override, "COLL",
    "Collective algorithms by operation, e.g. allreduce=ring,bcast=chain:segment=32k,barrier=nway:n=3. "
    "barrier=node+NAME: the ranks of a node meet in shared memory, and the leaders of nodes by NAME. "
    "An algorithm that cannot do a call leaves it to the built-in rules. deterministic: reductions of the "
    "same data by the same "
    "number of ranks give the same bits in every run, wherever the ranks are. `fishplate info --coll` lists "
    "them.");

static struct coll_choice forced[COLL_KINDS];
static bool deterministic; /* the order of operands depends on the number of ranks and the data only */

#define DETERMINISTIC "deterministic"
#define BY_NODE       "node+" /* before the name of a barrier: among the leaders of nodes only */

static bool rule_holds(const struct coll_rule *rule, const struct coll_shape *shape,
                       const struct coll_where *where)
{
    const int size = shape->size;
    if (rule->kind != shape->kind || size < rule->min_size || (rule->max_size && size > rule->max_size))
        return false;
    return where->bytes >= rule->min_bytes && (!rule->max_bytes || where->bytes <= rule->max_bytes);
}

static bool usable(const struct coll_algorithm *a, const struct coll_shape *shape,
                   const struct coll_where *where, bool blocking)
{
    if ((a->needs & NEED_NODE) && (!where->one_node || !blocking))
        return false;
    /* Through shared memory operands are combined in another order than by messages: which of the two it is must not depend on
     * where the ranks are, nor on whether the call blocks. */
    if (deterministic && (a->needs & NEED_NODE) && a->kind >= COLL_REDUCE && a->kind <= COLL_EXSCAN)
        return false;
    if ((a->needs & NEED_NODES) && !where->nodes)
        return false;
    return algorithm_fits(a, shape);
}

/* The rules name algorithms; their addresses are looked up once. */
static const struct coll_algorithm *algorithm_of(size_t index)
{
    static const struct coll_algorithm *known[128];
    const struct coll_rule *rule = coll_rules_get(index);
    if (index >= COUNT_OF(known))
        return algorithm_find(rule->kind, rule->algorithm);
    if (!known[index])
        known[index] = algorithm_find(rule->kind, rule->algorithm);
    return known[index];
}

static size_t first_rule(enum coll_kind kind)
{
    static uint8_t first[COLL_KINDS]; /* index + 1; 0 until asked */
    if (unlikely(first[kind] == 0)) {
        size_t i = 0;
        while (i < coll_rules_count() && coll_rules_get(i)->kind != kind)
            i++;
        first[kind] = (uint8_t)(i + 1);
    }
    return first[kind] - 1u;
}

struct coll_choice coll_select(const struct coll_shape *shape, const struct coll_where *where, bool blocking)
{
    const struct coll_choice *f = &forced[shape->kind];
    if (unlikely(f->algorithm != NULL) && usable(f->algorithm, shape, where, blocking))
        return *f;
    for (size_t i = first_rule(shape->kind); i < coll_rules_count(); i++) {
        const struct coll_rule *rule = coll_rules_get(i);
        if (!rule_holds(rule, shape, where))
            continue;
        const struct coll_algorithm *a = algorithm_of(i);
        if (a && usable(a, shape, where, blocking))
            return (struct coll_choice){.algorithm = a, .segment = rule->segment, .window = rule->window};
    }
    err_panic(__FILE__, __LINE__, "no collective rule fits");
}

bool coll_is_forced(enum coll_kind kind)
{
    return forced[kind].algorithm != NULL;
}

uint64_t coll_select_next(enum coll_kind kind, uint64_t bytes)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = first_rule(kind); i < coll_rules_count() && coll_rules_get(i)->kind == kind; i++) {
        const struct coll_rule *rule = coll_rules_get(i);
        if (rule->min_bytes > bytes)
            next = MIN(next, rule->min_bytes);
        if (rule->max_bytes >= bytes && rule->max_bytes != 0)
            next = MIN(next, rule->max_bytes + 1);
    }
    return next;
}

static int unknown_kind(const char *word)
{
    struct nearest best = nearest_begin(word);
    for (int k = 0; k < COLL_KINDS; k++)
        nearest_consider(&best, coll_kind_name((enum coll_kind)k));
    if (best.word)
        return err_set(MPI_ERR_ARG, "FISHPLATE_COLL: there is no operation '%s'; did you mean '%s'?", word,
                       best.word);
    return err_set(MPI_ERR_ARG, "FISHPLATE_COLL: there is no operation '%s'", word);
}

static int unknown_algorithm(enum coll_kind kind, const char *word)
{
    char names[256] = "";
    struct nearest best = nearest_begin(word);
    for (size_t i = 0; i < algorithms_count(); i++) {
        const struct coll_algorithm *a = algorithms_get(i);
        if (a->kind != kind || (a->needs & NEED_INTER))
            continue;
        nearest_consider(&best, a->name);
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

static bool parse_size(const char *text, uint64_t *out)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (end == text)
        return false;
    switch (tolower((unsigned char)*end)) {
    case 'g':
        value *= 1024; /* fall through */
    case 'm':
        value *= 1024; /* fall through */
    case 'k':
        value *= 1024;
        end++;
    }
    *out = value;
    return *end == '\0';
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
    if (!equals || !parse_size(equals + 1, &value))
        return err_set(MPI_ERR_ARG, "FISHPLATE_COLL: '%s' needs a number, as in segment=32k", text);
    if (strcmp(text, "segment") == 0)
        choice->segment = value;
    else if (strcmp(text, "window") == 0)
        choice->window = (int)MIN(value, 1u << 20);
    else
        return parse_parameter(text, value, choice);
    return 0;
}

/* operation=algorithm[:option=number]... */
static int parse_item(char *item)
{
    char *save = NULL, *equals = strchr(item, '=');
    if (strcmp(item, DETERMINISTIC) == 0) {
        deterministic = true;
        return 0;
    }
    if (!equals)
        return err_set(
            MPI_ERR_ARG,
            "FISHPLATE_COLL: '%s' is neither " DETERMINISTIC " nor of the form operation=algorithm", item);
    *equals = '\0';
    int kind = 0;
    while (kind < COLL_KINDS && strcmp(item, coll_kind_name((enum coll_kind)kind)) != 0)
        kind++;
    if (kind == COLL_KINDS)
        return unknown_kind(item);
    const char *name = strtok_r(equals + 1, ":", &save);
    const bool by_node = kind == COLL_BARRIER && name && strncmp(name, BY_NODE, strlen(BY_NODE)) == 0;
    if (by_node)
        name += strlen(BY_NODE);
    struct coll_choice choice = {.algorithm = name ? algorithm_find((enum coll_kind)kind, name) : NULL,
                                 .named = true,
                                 .by_node = by_node};
    if (!choice.algorithm)
        return unknown_algorithm((enum coll_kind)kind, name ? name : "");
    if (by_node && !choice.algorithm->generate)
        return err_set(MPI_ERR_ARG,
                       "FISHPLATE_COLL: barrier=%s%s: only an algorithm by messages can follow " BY_NODE,
                       BY_NODE, name);
    for (char *option = strtok_r(NULL, ":", &save); option; option = strtok_r(NULL, ":", &save)) {
        int rc = parse_option(option, &choice);
        if (rc)
            return rc;
    }
    forced[kind] = choice;
    return 0;
}

int coll_select_open(void)
{
    memset(forced, 0, sizeof(forced));
    deterministic = false;
    char *text = strdup(coll_override.text ? coll_override.text : ""), *save = NULL;
    if (!text)
        return err_set(MPI_ERR_NO_MEM, "out of memory while reading FISHPLATE_COLL");
    int rc = 0;
    for (char *item = strtok_r(text, ", ", &save); item && !rc; item = strtok_r(NULL, ", ", &save))
        rc = parse_item(item);
    free(text);
    return rc;
}
