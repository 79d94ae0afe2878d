/* info_coll.c: prints the collective algorithms and the rules that select one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "cli/number.h"
#include "coll/select/select.h"
#include "info.h"

static const char *size_text(uint64_t bytes, char out[32])
{
    number_print_size(bytes, out);
    return out;
}

/* Prints the conditions under which an algorithm can be used. */
static void describe_needs(const struct fishplate_inside *in, const struct coll_rule *r, FILE *f)
{
    static const struct {
        unsigned need;
        const char *text;
    } needs[] = {
        {NEED_NODE, "all ranks on one node"},   {NEED_NODES, "ranks on several nodes"},
        {NEED_INTER, "between two groups"},     {NEED_POW2, "a power of two of ranks"},
        {NEED_EVEN, "an even number of ranks"}, {NEED_COMMUTATIVE, "commutative operators"},
    };
    for (size_t i = 0; i < in->algorithms_count(); i++) {
        const struct coll_algorithm *a = in->algorithms_get(i);
        if (a->kind != r->kind || strcmp(a->name, r->algorithm) != 0)
            continue;
        for (size_t n = 0; n < sizeof(needs) / sizeof(needs[0]); n++)
            if (a->needs & needs[n].need)
                fprintf(f, ", %s", needs[n].text);
    }
}

/* Describes when a rule applies: ", up to 2 KiB, at least 5 ranks". */
static void describe_rule(const struct fishplate_inside *in, const struct coll_rule *r, char *out,
                          size_t size)
{
    char low[32], high[32];
    FILE *f = fmemopen(out, size, "w");
    if (!f)
        return;
    if (r->min_bytes && r->max_bytes)
        fprintf(f, ", from %s to %s", size_text(r->min_bytes, low), size_text(r->max_bytes, high));
    else if (r->max_bytes)
        fprintf(f, ", up to %s", size_text(r->max_bytes, high));
    else if (r->min_bytes)
        fprintf(f, ", from %s", size_text(r->min_bytes, low));
    if (r->min_size && r->max_size)
        fprintf(f, ", %d to %d ranks", r->min_size, r->max_size);
    else if (r->min_size || r->max_size)
        fprintf(f, ", at %s %d ranks", r->min_size ? "least" : "most",
                r->min_size ? r->min_size : r->max_size);
    describe_needs(in, r, f);
    if (ftell(f) == 0)
        fputs(", anything else", f);
    if (r->segment)
        fprintf(f, "; in pieces of %s", size_text(r->segment, low));
    if (r->window)
        fprintf(f, "; %d messages in flight", r->window);
    fclose(f);
}

static bool has_rules_of_kind(const struct fishplate_inside *in, int kind)
{
    for (size_t i = 0; i < in->coll_rules_count(); i++)
        if ((int)in->coll_rules_get(i)->kind == kind)
            return true;
    return false;
}

static void algorithm_text(const struct fishplate_inside *in, const struct coll_algorithm *a)
{
    printf("  %-18s %-20s %s", in->coll_kind_name((int)a->kind), a->name, a->doc ? a->doc : "");
    for (int i = 0; i < COLL_PARAMETERS && a->parameter[i].name; i++)
        printf("; %s=%d..%d, preset %d", a->parameter[i].name, a->parameter[i].min, a->parameter[i].max,
               a->parameter[i].preset);
    printf("\n");
}

static void bounds_text(const char *name, const struct coll_site_bounds *b)
{
    if (b->max == UINT64_MAX && b->min > 0)
        printf(" %s=%" PRIu64 "-", name, b->min);
    else if (b->max != UINT64_MAX && b->min == b->max)
        printf(" %s=%" PRIu64, name, b->min);
    else if (b->max != UINT64_MAX)
        printf(" %s=%" PRIu64 "-%" PRIu64, name, b->min, b->max);
}

/* Formats a choice in the syntax of FISHPLATE_COLL. */
static void choice_text(const struct coll_choice *c, char *out, size_t size)
{
    FILE *f = fmemopen(out, size, "w");
    if (!f)
        return;
    fprintf(f, "%s%s", c->by_node ? "node+" : "", c->algorithm->name);
    if (c->segment)
        fprintf(f, ":segment=%" PRIu64, c->segment);
    if (c->window)
        fprintf(f, ":window=%d", c->window);
    for (int i = 0; i < COLL_PARAMETERS && c->algorithm->parameter[i].name; i++)
        if (c->parameter[i])
            fprintf(f, ":%s=%d", c->algorithm->parameter[i].name, c->parameter[i]);
    fclose(f);
}

/* Prints the rules of the site's rule file, which precede the built-in rules. */
static void site_text(const struct fishplate_inside *in)
{
    const struct coll_site_rule *rule;
    const char *why;
    size_t count;
    if (in->coll_site(&rule, &count, &why) != 0)
        printf("%s\n", why);
    if (count > 0)
        printf("Collectives: rules of the file that FISHPLATE_COLL names; the first one that holds wins\n");
    for (size_t i = 0; i < count; i++) {
        char name[128] = "";
        choice_text(&rule[i].choice, name, sizeof(name));
        printf("  line %d: %s", rule[i].line, in->coll_kind_name((int)rule[i].kind));
        bounds_text("ranks", &rule[i].ranks);
        bounds_text("nodes", &rule[i].nodes);
        bounds_text("bytes", &rule[i].bytes);
        printf(" %s\n", name);
    }
}

void info_coll_text(const struct fishplate_inside *in)
{
    char when[200] = ", ";
    site_text(in);
    printf("Collectives: the first rule that holds, and whose algorithm can do the call, wins\n");
    for (int kind = 0; kind < COLL_KINDS; kind++) {
        if (!has_rules_of_kind(in, kind))
            continue;
        printf("  %s\n", in->coll_kind_name(kind));
        for (size_t i = 0; i < in->coll_rules_count(); i++) {
            const struct coll_rule *r = in->coll_rules_get(i);
            if ((int)r->kind != kind)
                continue;
            describe_rule(in, r, when, sizeof(when));
            printf("    %-20s %s\n", r->algorithm, when + 2);
        }
    }
    printf("Algorithms that FISHPLATE_COLL may name\n");
    for (int kind = 0; kind < COLL_KINDS; kind++)
        for (size_t i = 0; i < in->algorithms_count(); i++) {
            const struct coll_algorithm *a = in->algorithms_get(i);
            if ((int)a->kind == kind)
                algorithm_text(in, a);
        }
    printf("Under mpiexec -enable-recovery every collective is made of messages: flags in memory, RDMA "
           "writes, switches and "
           "multicast do not say who is missing\n");
    info_tried_text();
}

static void rules_json(const struct fishplate_inside *in, struct json *j)
{
    json_array(j, "rules");
    for (size_t i = 0; i < in->coll_rules_count(); i++) {
        const struct coll_rule *r = in->coll_rules_get(i);
        json_object(j, NULL);
        json_members(j, "collective=%s algorithm=%s min_ranks=%d max_ranks=%d min_bytes=%lld max_bytes=%lld",
                     in->coll_kind_name((int)r->kind), r->algorithm, r->min_size, r->max_size,
                     (long long)r->min_bytes, (long long)r->max_bytes);
        json_members(j, "segment=%lld window=%d", (long long)r->segment, r->window);
        json_end(j);
    }
    json_end(j);
}

static void site_json(const struct fishplate_inside *in, struct json *j)
{
    const struct coll_site_rule *rule;
    const char *why;
    size_t count;
    if (in->coll_site(&rule, &count, &why) != 0)
        json_string(j, "error", why);
    json_array(j, "site");
    for (size_t i = 0; i < count; i++) {
        char name[128] = "";
        const struct {
            const char *low, *high;
            const struct coll_site_bounds *b;
        } bounds[] = {{"min_ranks", "max_ranks", &rule[i].ranks},
                      {"min_nodes", "max_nodes", &rule[i].nodes},
                      {"min_bytes", "max_bytes", &rule[i].bytes}};
        choice_text(&rule[i].choice, name, sizeof(name));
        json_object(j, NULL);
        json_members(j, "collective=%s algorithm=%s line=%d", in->coll_kind_name((int)rule[i].kind), name,
                     rule[i].line);
        for (size_t k = 0; k < sizeof(bounds) / sizeof(bounds[0]); k++) {
            json_int(j, bounds[k].low, (long long)bounds[k].b->min);
            if (bounds[k].b->max != UINT64_MAX)
                json_int(j, bounds[k].high, (long long)bounds[k].b->max);
        }
        json_end(j);
    }
    json_end(j);
}

static void parameters_json(const struct coll_algorithm *a, struct json *j)
{
    json_array(j, "parameters");
    for (int i = 0; i < COLL_PARAMETERS && a->parameter[i].name; i++) {
        json_record(j, NULL, "name=%s min=%d max=%d preset=%d", a->parameter[i].name, a->parameter[i].min,
                    a->parameter[i].max, a->parameter[i].preset);
    }
    json_end(j);
}

void info_coll_json(const struct fishplate_inside *in, struct json *j)
{
    json_object(j, "coll");
    site_json(in, j);
    rules_json(in, j);
    json_array(j, "algorithms");
    for (size_t i = 0; i < in->algorithms_count(); i++) {
        const struct coll_algorithm *a = in->algorithms_get(i);
        json_object(j, NULL);
        json_members(j, "collective=%s name=%s doc=%s", in->coll_kind_name((int)a->kind), a->name,
                     a->doc ? a->doc : "");
        parameters_json(a, j);
        json_end(j);
    }
    json_end(j);
    info_tried_json(j);
    json_end(j);
}
