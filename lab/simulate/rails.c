/* rails.c: `fishplate-lab sim rails`: several rails with the policies of the library (src/net/rails and
 * lab/mechanisms/rails), for the studies of the papers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rails.h"
#include "simulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "tools/fishplate/command.h"
#include "cli/number.h"
#include "cli/options.h"

struct rails_options {
    struct study study;
    const char *figures[STUDY_FIGURES];
    int figures_count;
    const char *svg; /* folder, or NULL */
    bool json, help, only_claims, no_claims, one;
    struct study_key key; /* parameters of a single run */
};

static const char *const usage_text =
    "Usage: fishplate-lab sim rails [options]\n"
    "\n"
    "Nodes with several adapters (rails): which rail does a message take, and what does it cost? Runs the "
    "library's own policies on a simulated machine and makes the figures of two papers, with the papers' "
    "statements checked one by one:\n"
    "\n"
    "  3 to 16       Coll et al. 2001: 128 nodes of 4 processes, fat trees, adapters whose bus moves data "
    "one way at a time; messages of random sizes to random processes. Policies: basic (round robin), local "
    "(rails that are free here), dynamic (rails reserved at both ends), hybrid (dynamic for long messages)\n"
    "  8.16 to 8.19  Liu 2004: two nodes, rails of 1 GB/s and 250 MB/s: even, weighted and adaptive stripes; "
    "recovery\n"
    "\n"
    "Loads are fractions of what a node's links carry in one direction; the buses allow half. The same seed "
    "gives the same result on every machine.\n"
    "\n"
    "Options:\n"
    "  --figures 8,10,8.19  only these, and no statements (default: all; takes minutes)\n"
    "  --quick              32 nodes where the paper has 128, shorter runs: about a minute\n"
    "  --statements         only the statements\n"
    "  --svg FOLDER         write each figure as FOLDER/figure-8.svg\n"
    "  --json\n"
    "  --seed 1\n"
    "  --length 1           length of each run relative to the default\n"
    "  --control 300        time in cycles that an adapter takes for a control frame of a reservation\n"
    "  --nodes 128          number of nodes in figures for which the paper has 128\n"
    "  --set NAME=VALUE     a parameter of the machine (fishplate-lab sim --help lists them; a nanosecond is "
    "a cycle)\n"
    "  --run dynamic        one run: basic, local, dynamic or hybrid; with --rails 4 --load 0.3 --bytes 32k "
    "--ratio 1 (0: one rail for a message, 1: all that are free) --short 4k (hybrid)\n"
    "  --help\n"
    "\n"
    "Examples:\n"
    "  fishplate-lab sim rails --quick\n"
    "  fishplate-lab sim rails --figures 10 --svg .\n"
    "  fishplate-lab sim rails --run hybrid --nodes 64 --rails 2 --load 0.25 --bytes 64k\n";

static bool parse_figures(struct rails_options *o, const char *text)
{
    o->no_claims = true;
    for (; *text; text += *text == ',') {
        size_t len = strcspn(text, ",");
        int i = 0;
        while (figure_ids[i] && (strlen(figure_ids[i]) != len || strncmp(figure_ids[i], text, len) != 0))
            i++;
        if (!figure_ids[i] || o->figures_count == STUDY_FIGURES)
            return false;
        o->figures[o->figures_count++] = figure_ids[i];
        text += len;
    }
    return o->figures_count > 0;
}

static bool parse_policy(struct rails_options *o, const char *name)
{
    static const char *const names[] = {[ALLOC_BASIC] = "basic",
                                        [ALLOC_LOCAL] = "local",
                                        [ALLOC_DYNAMIC] = "dynamic",
                                        [ALLOC_HYBRID] = "hybrid"};
    o->one = true;
    for (int i = ALLOC_BASIC; i <= ALLOC_HYBRID; i++)
        if (strcmp(names[i], name) == 0) {
            o->key.policy = (enum alloc_policy)i;
            return true;
        }
    return false;
}

static bool parse_value(void *options, const char *name, const char *value)
{
    struct rails_options *o = options;
    double number;
    size_t bytes;
    if (strcmp(name, "--figures") == 0)
        return parse_figures(o, value);
    if (strcmp(name, "--run") == 0)
        return parse_policy(o, value);
    if (strcmp(name, "--svg") == 0)
        return (o->svg = value)[0] != 0;
    if (strcmp(name, "--set") == 0)
        return machine_set_pair(&o->study.machine, value);
    if (strcmp(name, "--length") == 0)
        return number_parse_real(value, 0.01, 1000, &o->study.length);
    if (strcmp(name, "--control") == 0)
        return number_parse_real(value, 0, 1e6, &o->study.control_ns);
    if (strcmp(name, "--load") == 0)
        return number_parse_real(value, 0.0001, 2, &o->key.load);
    if (strcmp(name, "--ratio") == 0)
        return number_parse_real(value, 0, 1, &o->key.ratio);
    if (strcmp(name, "--seed") == 0 && number_parse_real(value, 0, 1e15, &number))
        return (o->study.seed = (uint64_t)number) == number;
    if (strcmp(name, "--nodes") == 0 && number_parse_real(value, 2, 4096, &number))
        return (o->study.nodes = (int)number) == number;
    if (strcmp(name, "--rails") == 0 && number_parse_real(value, 1, RAILS_MAX, &number))
        return (o->key.rails = (int)number) == number;
    if (strcmp(name, "--bytes") == 0 && number_size(value, strlen(value), &bytes))
        return (o->key.kib = (double)bytes / 1024) > 0;
    if (strcmp(name, "--short") == 0 && number_size(value, strlen(value), &bytes))
        return (o->key.shortest_kib = (int)(bytes / 1024)) >= 0;
    return false;
}

static bool parse_word(void *options, const char *text)
{
    struct rails_options *o = options;
    if (strcmp(text, "--statements") == 0) {
        o->only_claims = true;
        return true;
    }
    if (strcmp(text, "--quick") != 0)
        return false;
    o->study.nodes = 32;
    o->study.length = 0.4;
    return true;
}

static int rails_parse(struct rails_options *o, int argc, char **argv)
{
    *o = (struct rails_options){
        .study = {.nodes = 128, .length = 1, .control_ns = 300, .seed = 1, .machine = traffic_machine},
        .key = {.rails = 4, .load = 0.3, .kib = 32, .shortest_kib = 4, .ratio = 0}};
    const struct sim_command c = {"sim rails", o, &o->help, &o->json, parse_word, parse_value, NULL};
    int status = sim_parse(&c, argc, argv);
    if (status)
        return status;
    if (o->only_claims && o->no_claims)
        return sim_report_misuse("sim rails", "leaves no statements", "--figures");
    for (int i = 0; !o->no_claims && figure_ids[i]; i++)
        o->figures[o->figures_count++] = figure_ids[i];
    return 0;
}

static bool write_svg(const char *folder, const struct chart *c)
{
    char path[4096];
    snprintf(path, sizeof(path), "%.4000s/figure-%.16s.svg", folder, c->id);
    FILE *out = fopen(path, "w");
    if (out)
        chart_svg(c, out);
    if (out && fclose(out) == 0)
        return true;
    fprintf(stderr, "fishplate-lab sim rails: cannot write '%s': %s.\n", path, strerror(errno));
    return false;
}

static void print_statements(const struct statement *s, int count)
{
    int agree = 0;
    puts("\nWhat the papers say, and what was found here:\n");
    for (int i = 0; i < count; i++) {
        agree += s[i].agrees;
        printf("%s  %s\n%11s%s\n%11sfound: %s\n", s[i].agrees ? "agrees " : "DIFFERS", s[i].where, "",
               s[i].claim, "", s[i].found);
        if (!s[i].agrees && s[i].why)
            printf("%11swhy: %s\n", "", s[i].why);
    }
    printf("\n%d of %d agree.\n", agree, count);
}

static void json_statements(struct json *j, const struct statement *s, int count)
{
    json_array(j, "statements");
    for (int i = 0; i < count; i++) {
        json_object(j, NULL);
        json_string(j, "where", s[i].where);
        json_string(j, "claim", s[i].claim);
        json_string(j, "found", s[i].found);
        json_bool(j, "agrees", s[i].agrees);
        if (s[i].why)
            json_string(j, "why", s[i].why);
        json_end(j);
    }
    json_end(j);
}

static int rails_print_single_run(struct rails_options *o)
{
    struct study *s = &o->study;
    o->key.nodes = s->nodes;
    struct traffic_report r = study_report_of_run(s, o->key);
    struct json j = {.out = stdout};
    if (!o->json) {
        printf("offered %.4f, accepted %.4f, latency %.0f cycles (%.0f of them before the first byte left), "
               "%.2f stripes a message, %llu messages, %llu control frames, %llu rounds of requests refused "
               "(simulated)\n",
               r.offered, r.accepted, r.latency_us * 1000, r.waited_us * 1000, r.stripes,
               (unsigned long long)r.messages, (unsigned long long)r.frames, (unsigned long long)r.refused);
        return 0;
    }
    json_object(&j, NULL);
    json_real(&j, "offered", r.offered);
    json_real(&j, "accepted", r.accepted);
    json_real(&j, "latency_cycles", r.latency_us * 1000);
    json_real(&j, "waited_cycles", r.waited_us * 1000);
    json_real(&j, "stripes", r.stripes);
    json_int(&j, "messages", (long long)r.messages);
    json_int(&j, "control_frames", (long long)r.frames);
    json_int(&j, "refused", (long long)r.refused);
    json_int(&j, "events", (long long)r.events);
    json_end(&j);
    putchar('\n');
    return 0;
}

static int rails_run(struct rails_options *o)
{
    static struct chart c; /* static because it is too large for a small stack */
    struct statement statements[STATEMENTS_MAX] = {{0}};
    struct json j = {.out = stdout};
    int status = 0, count = 0;
    if (o->json) {
        json_object(&j, NULL);
        json_string(&j, "program", "fishplate-lab sim rails");
        json_int(&j, "nodes", o->study.nodes);
        json_int(&j, "seed", (long long)o->study.seed);
        json_array(&j, "figures");
    } else {
        printf("fishplate-lab sim rails: %d nodes where the paper has 128, 4 processes each, %g cycles for a "
               "control frame "
               "(simulated)\n",
               o->study.nodes, o->study.control_ns);
    }
    for (int i = 0; !o->only_claims && i < o->figures_count; i++) {
        study_make_figure(&o->study, o->figures[i], &c);
        if (o->svg && !write_svg(o->svg, &c))
            status = 1;
        if (o->json)
            chart_json(&c, &j);
        else
            chart_table(&c, stdout);
    }
    if (!o->no_claims) {
        count = statements_check(&o->study, statements);
        count += stream_check_statements(o->study.length, statements + count, STATEMENTS_MAX - count,
                                         &o->study.events);
    }
    if (o->json) {
        json_end(&j);
        json_statements(&j, statements, count);
        json_int(&j, "events", (long long)o->study.events);
        json_end(&j);
        putchar('\n');
    } else {
        if (count)
            print_statements(statements, count);
        printf("\n%.1f million events\n", (double)o->study.events * 1e-6);
    }
    return status;
}

int command_sim_rails(int argc, char **argv)
{
    struct rails_options o;
    int status = rails_parse(&o, argc, argv);
    if (status)
        return status;
    if (o.help) {
        cli_print_page(usage_text, stdout);
        return 0;
    }
    status = o.one ? rails_print_single_run(&o) : rails_run(&o);
    study_free(&o.study);
    return status;
}
