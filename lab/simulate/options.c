/* options.c: reads the options of the commands of `fishplate-lab sim`, and descriptions of machines.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "simulate.h"

#include <errno.h>
#include <string.h>

#include "bench/bench.h"

#include "api/inside.h"
#include "coll/select/select.h"
#include "tools/fishplate/command.h"
#include "lab/json_read.h"
#include "cli/number.h"

int sim_report_misuse(const char *command, const char *what, const char *about)
{
    fprintf(stderr, "fishplate-lab %s: '%s' %s; see --help.\n", command, about, what);
    return 2;
}

int sim_parse(const struct sim_command *c, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            *c->help = true;
        else if (strcmp(argv[i], "--json") == 0)
            *c->json = true;
        else if (c->word && c->word(c->options, argv[i]))
            continue;
        else if (argv[i][0] != '-' && c->stray)
            return sim_report_misuse(c->name, c->stray, argv[i]);
        else if (i + 1 == argc || argv[i][0] != '-')
            return sim_report_misuse(c->name, "is not an option, or its value is missing", argv[i]);
        else if (!c->value(c->options, argv[i], argv[i + 1]))
            return sim_report_misuse(c->name, "is not an option, or its value is invalid", argv[i]);
        else
            i++;
    }
    return 0;
}

bool sim_parse_list(const char *text, size_t *list, int *count)
{
    return number_sizes(text, list, SIM_LIST_MAX, count);
}

/* Uses the LogP parameters of a small message, and the rate at which large messages follow each other. The
 * latency L includes everything between the two processors; it is assigned to the two cables, and the switch
 * gets none. */
static bool machine_set_logp(struct machine *m, const struct value *of_verb)
{
    const struct value *small = NULL, *one = NULL, *two = NULL;
    for (const struct value *v = value_first_element(of_verb, "logp"); v; v = v->next) {
        if (value_number(v, "g", -1) <= 0 || value_number(v, "o_s", -1) < 0)
            continue;
        small = small ? small : v;
        one = two;
        two = v;
    }
    if (!one || value_number(two, "g", 0) <= value_number(one, "g", 0))
        return false;
    double latency = value_number(small, "L", 0) * 1000;
    m->send_ns = value_number(small, "o_s", 0) * 1000;
    m->receive_ns = value_number(small, "o_r", 0) * 1000;
    m->message_ns = value_number(small, "g", 0) * 1000;
    m->link_ns = latency > 0 ? latency / 2 : 0;
    m->switch_ns = m->bus_rate = m->header_bytes = m->multicast_ns = m->multicast_byte_ns = 0;
    m->ack_ns = m->receive_ns; /* upper limit: acknowledgements are only polled in memory */
    m->link_rate = (value_number(two, "bytes", 0) - value_number(one, "bytes", 0)) /
                   (value_number(two, "g", 0) - value_number(one, "g", 0)) / 1000;
    return m->link_rate > 0;
}

static bool machine_read_logp(struct machine *m, const char *path, char *why, size_t size)
{
    struct value *all = value_read(path);
    bool good = false;
    for (const struct value *v = value_first_element(all, "verbs"); v && !good; v = v->next)
        good = strcmp(value_text(v, "verb"), "send") == 0 && machine_set_logp(m, v);
    value_free(all);
    if (!good)
        snprintf(why, size,
                 "it is JSON, but has no LogP parameters of the verb send for two sizes; write it with "
                 "fishplate-lab logp --json");
    return good;
}

bool sim_read_machine(struct machine *m, const char *what)
{
    char why[256] = "";
    const struct graph *topology = m->topology;
    if (machine_set_preset(m, what)) {
        m->topology = topology;
        return true;
    }
    FILE *in = fopen(what, "r");
    if (!in) {
        fprintf(stderr, "fishplate-lab sim: '%s' is no preset (ib100, liu2004), and cannot be opened: %s.\n",
                what, strerror(errno));
        return false;
    }
    int first = getc(in);
    rewind(in);
    bool good =
        first == '{' ? machine_read_logp(m, what, why, sizeof(why)) : machine_read(m, in, why, sizeof(why));
    fclose(in);
    if (!good)
        fprintf(stderr, "fishplate-lab sim: %s, %s.\n", what, why);
    return good;
}

const struct coll_algorithm *sim_find_selected(enum coll_kind kind, int ranks, size_t bytes)
{
    const struct fishplate_inside *in = get_library_table();
    struct coll_shape shape = {.kind = kind, .size = ranks, .commutative = true, .adjacent = true};
    for (size_t i = 0; i < in->coll_rules_count(); i++) {
        const struct coll_rule *r = in->coll_rules_get(i);
        const struct coll_algorithm *a = r->kind == kind ? algorithm_find(kind, r->algorithm) : NULL;
        if (!a || !a->generate || !algorithm_fits(a, &shape))
            continue;
        if (ranks >= r->min_size && (!r->max_size || ranks <= r->max_size) && bytes >= r->min_bytes &&
            (!r->max_bytes || bytes <= r->max_bytes))
            return a;
    }
    return NULL;
}
