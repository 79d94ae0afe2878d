/* select.c: selects an algorithm: first the one that FISHPLATE_COLL names, then the rules of a site's file,
 * then the built-in rules. Example: "@site.coll,allreduce=ring,bcast=chain:segment=32k".
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/select/select.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/nearest.h"
#include "base/tunable.h"
#include "coll/select/parse.h"
#include "coll/select/site.h"

static int check_settings(const char *text);

static TUNABLE_CHECKED(
    coll_override, "COLL", check_settings,
    "Collective algorithms by operation, e.g. allreduce=ring,bcast=chain:segment=32k,barrier=nway:n=3. "
    "barrier=node+NAME: the ranks of a node use shared memory, and the leaders of nodes NAME. "
    "An algorithm that cannot do a call leaves it to the built-in rules. @FILE: rules by operation, ranks, "
    "nodes and bytes "
    "from a file that `fishplate tune` wrote; it must be the same on every host. deterministic: reductions "
    "of the "
    "same data by the same number of ranks give the same bits in every run, wherever the ranks are. rules: "
    "nothing is measured between nodes; the built-in rules decide. "
    "copy=slots, read or split: how long data of ranks on one node moves: through shared memory (two copies "
    "at "
    "once), read by the receiver from the sender's memory (one copy), or read while the sender writes a "
    "part; "
    "measured otherwise. `fishplate info --coll` lists the algorithms.");

/* The rules of a site's file, which precede the built-in ones. */
static struct site site;

static struct settings {
    struct coll_choice forced[COLL_KINDS];
    bool deterministic; /* the order of operations depends only on the number of ranks and on the data */
    bool only_rules;    /* nothing is measured */
    enum coll_copy copy_method;
} settings;

#define DETERMINISTIC "deterministic"
#define RULES         "rules"

static bool rule_applies(const struct coll_rule *rule, const struct coll_shape *shape,
                         const struct coll_where *where)
{
    const int size = shape->size;
    if (rule->kind != shape->kind || size < rule->min_size || (rule->max_size && size > rule->max_size))
        return false;
    return where->bytes >= rule->min_bytes && (!rule->max_bytes || where->bytes <= rule->max_bytes);
}

static bool kind_is_reduction(enum coll_kind kind)
{
    return kind >= COLL_REDUCE && kind <= COLL_EXSCAN;
}

static bool algorithm_is_usable(const struct coll_algorithm *a, const struct coll_shape *shape,
                                const struct coll_where *where, bool blocking)
{
    if ((a->needs & NEED_NODE) && (!where->one_node || !blocking))
        return false;
    /* Shared-memory algorithms combine operands in another order than message algorithms. In deterministic
     * mode the order must not depend on the placement of ranks, nor on whether the call blocks. */
    if (settings.deterministic && (a->needs & NEED_NODE) && kind_is_reduction(a->kind))
        return false;
    if ((a->needs & NEED_NODES) && !where->nodes)
        return false;
    return algorithm_fits(a, shape);
}

/* Returns the algorithm that a rule names; the lookup by name is cached. */
static const struct coll_algorithm *rule_get_algorithm(size_t index)
{
    static const struct coll_algorithm *known[128];
    const struct coll_rule *rule = coll_rules_get(index);
    if (index >= COUNT_OF(known))
        return algorithm_find(rule->kind, rule->algorithm);
    if (!known[index])
        known[index] = algorithm_find(rule->kind, rule->algorithm);
    return known[index];
}

static size_t find_first_rule(enum coll_kind kind)
{
    static uint8_t first[COLL_KINDS]; /* index + 1; 0: not computed */
    if (unlikely(first[kind] == 0)) {
        size_t i = 0;
        while (i < coll_rules_count() && coll_rules_get(i)->kind != kind)
            i++;
        first[kind] = (uint8_t)(i + 1);
    }
    return first[kind] - 1u;
}

/* Returns the choice of the site's file, or NULL. Its rules may depend on the number of nodes, so
 * deterministic mode does not use them for reductions. */
static const struct coll_choice *find_site_choice(const struct coll_shape *shape,
                                                  const struct coll_where *where, bool blocking)
{
    for (size_t i = 0; i < site.count && !(settings.deterministic && kind_is_reduction(shape->kind)); i++) {
        const struct coll_site_rule *rule = &site.rule[i];
        if (rule->kind == shape->kind &&
            site_rule_applies(rule, shape->size, where->node_count, where->bytes) &&
            algorithm_is_usable(rule->choice.algorithm, shape, where, blocking))
            return &rule->choice;
    }
    return NULL;
}

struct coll_choice coll_select(const struct coll_shape *shape, const struct coll_where *where, bool blocking)
{
    const struct coll_choice *f = &settings.forced[shape->kind];
    if (unlikely(f->algorithm != NULL) && algorithm_is_usable(f->algorithm, shape, where, blocking))
        return *f;
    if (unlikely(site.count > 0)) {
        const struct coll_choice *of_site = find_site_choice(shape, where, blocking);
        if (of_site)
            return *of_site;
    }
    for (size_t i = find_first_rule(shape->kind); i < coll_rules_count(); i++) {
        const struct coll_rule *rule = coll_rules_get(i);
        if (!rule_applies(rule, shape, where))
            continue;
        const struct coll_algorithm *a = rule_get_algorithm(i);
        if (a && algorithm_is_usable(a, shape, where, blocking))
            return (struct coll_choice){.algorithm = a, .segment = rule->segment, .window = rule->window};
    }
    err_panic(__FILE__, __LINE__, "no collective rule fits");
}

bool coll_is_forced(enum coll_kind kind)
{
    return settings.forced[kind].algorithm != NULL;
}

bool coll_uses_measurements(void)
{
    return !settings.only_rules;
}

enum coll_copy coll_copy_method(void)
{
    return settings.copy_method;
}

bool coll_is_deterministic(void)
{
    return settings.deterministic;
}

uint64_t coll_select_next(enum coll_kind kind, uint64_t bytes)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = find_first_rule(kind); i < coll_rules_count() && coll_rules_get(i)->kind == kind; i++) {
        const struct coll_rule *rule = coll_rules_get(i);
        if (rule->min_bytes > bytes)
            next = MIN(next, rule->min_bytes);
        if (rule->max_bytes >= bytes && rule->max_bytes != 0)
            next = MIN(next, rule->max_bytes + 1);
    }
    for (size_t i = 0; i < site.count; i++) {
        const struct coll_site_rule *rule = &site.rule[i];
        if (rule->kind == kind && rule->bytes.min > bytes)
            next = MIN(next, rule->bytes.min);
        if (rule->kind == kind && rule->bytes.max >= bytes && rule->bytes.max != UINT64_MAX)
            next = MIN(next, rule->bytes.max + 1);
    }
    return next;
}

static int parse_copy_setting(const char *word, struct settings *out)
{
    static const char *const words[] = {[COPY_SLOTS] = "slots", [COPY_READ] = "read", [COPY_SPLIT] = "split"};
    for (size_t i = COPY_SLOTS; i < COUNT_OF(words); i++)
        if (strcmp(word, words[i]) == 0) {
            out->copy_method = (enum coll_copy)i;
            return 0;
        }
    return err_set(MPI_ERR_ARG, "FISHPLATE_COLL: copy= must be slots, read or split, not '%s'", word);
}

static int unknown_item(const char *item)
{
    struct nearest best = nearest_start_search(item);
    nearest_compare_candidate(&best, DETERMINISTIC);
    nearest_compare_candidate(&best, RULES);
    if (best.word)
        return err_set(MPI_ERR_ARG, "FISHPLATE_COLL: '%s' is unknown; did you mean '%s'?", item, best.word);
    return err_set(MPI_ERR_ARG,
                   "FISHPLATE_COLL: '%s' is neither " DETERMINISTIC " nor " RULES
                   " nor of the form operation=algorithm or @file",
                   item);
}

/* Parses one item: operation=algorithm[:option=number]..., copy=method, @file, deterministic or rules. */
static int parse_item(char *item, struct settings *out, struct site *file)
{
    enum coll_kind kind;
    char *equals = strchr(item, '=');
    if (strcmp(item, DETERMINISTIC) == 0) {
        out->deterministic = true;
        return 0;
    }
    if (strcmp(item, RULES) == 0) {
        out->only_rules = true;
        return 0;
    }
    if (item[0] == '@')
        return file ? site_read(item + 1, file) : 0;
    if (!equals)
        return unknown_item(item);
    *equals = '\0';
    if (strcmp(item, "copy") == 0)
        return parse_copy_setting(equals + 1, out);
    int rc = coll_parse_kind(item, &kind);
    return rc ? rc : coll_parse(kind, equals + 1, &out->forced[kind]);
}

static int parse_settings(const char *value, struct settings *out, struct site *file)
{
    *out = (struct settings){.copy_method = COPY_MEASURED};
    char *text = strdup(value), *save = NULL;
    if (!text)
        return err_set(MPI_ERR_NO_MEM, "out of memory while reading FISHPLATE_COLL");
    int rc = 0;
    for (char *item = strtok_r(text, ", ", &save); item && !rc; item = strtok_r(NULL, ", ", &save))
        rc = parse_item(item, out, file);
    free(text);
    return rc;
}

/* Checks the setting without reading files; coll_select_open() reads them. An unreadable file must end the
 * job, because this rank alone would select other algorithms. A mistyped word is the same on every rank. */
static int check_settings(const char *text)
{
    struct settings checked;
    return parse_settings(text, &checked, NULL);
}

int coll_select_open(void)
{
    site_free(&site);
    return parse_settings(coll_override.text, &settings, &site);
}

size_t coll_site_count(void)
{
    return site.count;
}

const struct coll_site_rule *coll_site_get(size_t index)
{
    return &site.rule[index];
}
