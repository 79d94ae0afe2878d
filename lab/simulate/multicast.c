/* multicast.c: `fishplate-lab sim multicast`: broadcast by the switches' multicast on large machines, with
 * the library's own protocol, compared with a broadcast by messages; the figures and statements of [Liu04
 * 7.5].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "lab/sim/job.h"
#include "lab/sim/multicast.h"
#include "lab/sim/multicast_model.h"

#include "lab/chart.h"
#include "tools/fishplate/command.h"
#include "cli/json.h"
#include "multicast.h"
#include "simulate.h"
#include "cli/number.h"
#include "cli/options.h"

struct options {
    size_t nodes, packets, window, aggregate, timeout_us;
    size_t sizes[SIM_LIST_MAX], collectors[SIM_LIST_MAX];
    int nsizes, ncollectors;
    struct machine machine;
    const char *svg; /* folder, or NULL */
    bool json, help, measured;
};

/* Both tables as numbers, and the results. */
struct study {
    struct chart latency, throughput;
    double max_gain;         /* largest gain of multicast over messages */
    size_t best, best_paper; /* best number of collectors, in our design and in the paper's */
    bool inside;             /* the best number is neither the smallest nor the largest that was simulated */
};

static const char *const usage_text =
    "Usage: fishplate-lab sim multicast [options]\n"
    "\n"
    "Broadcasts by the multicast of simulated switches, made reliable by the library's own protocol: a "
    "window of packets, acknowledgements collected by the root and by co-roots, packets that are sent again. "
    "Two tables:\n"
    "  latency     one broadcast of a packet beside a binomial tree of messages, by size [Liu04 figure 7.9]\n"
    "  throughput  many broadcasts behind each other, by the number of collectors: the root and its co-roots "
    "[Liu04 figure 7.10]\n"
    "Both have closed forms beside them [Liu04 7.5], and the throughput of the paper's own design.\n"
    "\n"
    "Options:\n"
    "  --nodes 1024\n"
    "  --sizes 8,64,...     bytes of a broadcast, at most one packet (default 8 to 1k)\n"
    "  --collectors 1,2,... root and co-roots (default 1, 2, 4, ... up to the number of nodes)\n"
    "  --packets 200        broadcasts behind each other\n"
    "  --window 64          packets that are kept until all have acknowledged them\n"
    "  --aggregate 1        packets for each acknowledgement\n"
    "  --timeout 1000       us until an unacknowledged packet is sent again\n"
    "  --machine liu2004    a preset or a file, see fishplate-lab sim --help\n"
    "  --set NAME=VALUE     one parameter of the machine; loss=0.001 loses a thousandth of the packets on "
    "every link\n"
    "  --measured           a machine with the times of two virtual nodes here and of the library's own "
    "handling of acknowledgements, which are measured first\n"
    "  --svg FOLDER         write FOLDER/figure-7.9.svg and FOLDER/figure-7.10.svg\n"
    "  --json\n"
    "  --help\n"
    "\n"
    "Examples:\n"
    "  fishplate-lab sim multicast --svg .\n"
    "  fishplate-lab sim multicast --machine ib100 --nodes 4096 --aggregate 8 --set loss=0.0001\n";

static bool parse_count(const char *text, size_t least, size_t most, size_t *out)
{
    return number_size(text, strlen(text), out) && *out >= least && *out <= most;
}

static bool parse_value(void *options, const char *name, const char *value)
{
    struct options *o = options;
    if (strcmp(name, "--nodes") == 0)
        return parse_count(value, 2, 1 << 16, &o->nodes);
    if (strcmp(name, "--sizes") == 0)
        return sim_parse_list(value, o->sizes, &o->nsizes);
    if (strcmp(name, "--collectors") == 0)
        return sim_parse_list(value, o->collectors, &o->ncollectors);
    if (strcmp(name, "--packets") == 0)
        return parse_count(value, 1, 1 << 20, &o->packets);
    if (strcmp(name, "--window") == 0)
        return parse_count(value, 1, 1 << 12, &o->window);
    if (strcmp(name, "--aggregate") == 0)
        return parse_count(value, 1, 64, &o->aggregate);
    if (strcmp(name, "--timeout") == 0)
        return parse_count(value, 1, 1000000, &o->timeout_us);
    if (strcmp(name, "--machine") == 0)
        return sim_read_machine(&o->machine, value);
    if (strcmp(name, "--svg") == 0)
        return (o->svg = value)[0] != 0;
    return strcmp(name, "--set") == 0 && machine_set_pair(&o->machine, value);
}

static bool parse_word(void *options, const char *text)
{
    struct options *o = options;
    if (strcmp(text, "--measured") != 0)
        return false;
    return o->measured = true;
}

static int multicast_parse(struct options *o, int argc, char **argv)
{
    *o = (struct options){.nodes = 1024,
                          .packets = 200,
                          .window = 64,
                          .aggregate = 1,
                          .timeout_us = 1000,
                          .sizes = {8, 32, 128, 512, 1024},
                          .nsizes = 5};
    machine_set_preset(&o->machine, "liu2004");
    const struct sim_command c = {"sim multicast", o, &o->help, &o->json, parse_word, parse_value, NULL};
    int status = sim_parse(&c, argc, argv);
    if (status)
        return status;
    for (size_t k = 1;
         o->ncollectors < SIM_LIST_MAX && !(o->ncollectors && o->collectors[0] != 1) && k <= o->nodes; k *= 2)
        if (o->ncollectors == 0 || o->collectors[o->ncollectors - 1] == k / 2)
            o->collectors[o->ncollectors++] = k;
    for (int i = 0; i < o->nsizes; i++)
        if ((double)o->sizes[i] > o->machine.mtu)
            return sim_report_misuse("sim multicast",
                                     "is larger than a packet of this machine (--set mtu=...)", "--sizes");
    for (int i = 0; i < o->ncollectors; i++)
        if (o->collectors[i] < 1 || o->collectors[i] > o->nodes)
            return sim_report_misuse("sim multicast", "must be 1 to the number of nodes", "--collectors");
    return 0;
}

static struct multicast_report multicast_simulate_broadcasts(const struct options *o, size_t bytes,
                                                             size_t collectors, size_t packets)
{
    struct multicast_report r;
    struct multicast_order order = {
        .machine = &o->machine,
        .nodes = (uint32_t)o->nodes,
        .collectors = (uint32_t)collectors,
        .packets = (uint32_t)packets,
        .bytes = (uint32_t)bytes,
        .rules = multicast_rules((uint32_t)o->window, (uint32_t)o->aggregate, (double)o->timeout_us)};
    multicast_simulate(&order, &r);
    return r;
}

static double multicast_simulate_messages(const struct options *o, size_t bytes)
{
    struct job_report r = {.failed = "no such algorithm"};
    struct job_order order = {.machine = &o->machine,
                              .algorithm = algorithm_find(COLL_BCAST, "binomial"),
                              .ranks = (int)o->nodes,
                              .per_node = 1,
                              .bytes = bytes,
                              .most_steps = 1 << 26};
    if (order.algorithm)
        job_simulate(&order, &r);
    return r.failed ? 0 : r.us;
}

static void chart_add_value(struct chart *c, int line, double value)
{
    if (line >= 0)
        c->y[line][c->points] = value;
}

static const char *multicast_make_latency_chart(const struct options *o, struct study *s)
{
    struct chart *c = &s->latency;
    *c = (struct chart){.id = "7.9",
                        .title = "Latency of a broadcast",
                        .x_name = "bytes",
                        .y_name = "us",
                        .format = "%.2f",
                        .x_bytes = true,
                        .by_factors = true};
    const int messages = chart_line(c, "messages"), multicast = chart_line(c, "multicast"),
              model_messages = chart_line(c, "messages, model"),
              model_multicast = chart_line(c, "multicast, model");
    for (int i = 0; i < o->nsizes; i++) {
        const double tree = multicast_simulate_messages(o, o->sizes[i]);
        struct multicast_report r = multicast_simulate_broadcasts(o, o->sizes[i], 1, 1);
        if (r.failed || tree == 0)
            return r.failed ? r.failed : "no broadcast by messages";
        s->max_gain = tree / r.us > s->max_gain ? tree / r.us : s->max_gain;
        c->x[c->points] = (double)o->sizes[i];
        chart_add_value(c, messages, tree);
        chart_add_value(c, multicast, r.us);
        chart_add_value(c, model_messages,
                        model_messages_us(&o->machine, (uint32_t)o->nodes, (double)o->sizes[i]));
        chart_add_value(c, model_multicast,
                        model_multicast_us(&o->machine, (uint32_t)o->nodes, (double)o->sizes[i]));
        c->points++;
    }
    return NULL;
}

static const char *multicast_make_throughput_chart(const struct options *o, struct study *s)
{
    struct chart *c = &s->throughput;
    double least = 0, least_paper = 0;
    *c = (struct chart){.id = "7.10",
                        .title = "Broadcasts one after the other",
                        .x_name = "collectors",
                        .y_name = "thousands in a second",
                        .format = "%.2f",
                        .by_factors = true};
    const int simulated = chart_line(c, "simulated"), model = chart_line(c, "model"),
              paper = chart_line(c, "paper's design, model"), again = chart_line(c, "sent again");
    c->lines--; /* "sent again" is a column of the table without a curve */
    for (int i = 0; i < o->ncollectors; i++, c->points++) {
        const size_t bytes = o->sizes[o->nsizes - 1];
        struct multicast_report r = multicast_simulate_broadcasts(o, bytes, o->collectors[i], o->packets);
        const struct model_load l = {.nodes = (uint32_t)o->nodes,
                                     .collectors = (uint32_t)o->collectors[i],
                                     .aggregate = (uint32_t)o->aggregate,
                                     .bytes = (double)bytes};
        const double in_paper = model_paper_period_us(&o->machine, &l);
        if (r.failed)
            return r.failed;
        if (i == 0 || r.us < least) {
            least = r.us;
            s->best = o->collectors[i];
        }
        if (i == 0 || in_paper < least_paper) {
            least_paper = in_paper;
            s->best_paper = o->collectors[i];
        }
        c->x[c->points] = (double)o->collectors[i];
        chart_add_value(c, simulated, (double)o->packets / r.us * 1000);
        chart_add_value(c, model, 1000 / model_period_us(&o->machine, &l));
        chart_add_value(c, paper, 1000 / in_paper);
        chart_add_value(c, again, (double)r.again);
    }
    s->inside = s->best != o->collectors[0] && s->best != o->collectors[o->ncollectors - 1];
    return NULL;
}

/* The root of the paper's design sends log2 k times and collects N / k acknowledgements: k co-roots are
 * better than k / 2 if an acknowledgement takes more than k / N of a send, and better than 2 k if it takes
 * less than 2 k / N. Our root collects k + N / k. */
static void multicast_print_statements(const struct options *o, const struct study *s)
{
    const double nodes = (double)o->nodes, share = o->machine.ack_ns / o->machine.send_ns;
    printf("\nMulticast is up to %.2f times as fast as messages", s->max_gain);
    if (o->nodes == 1024)
        cli_print_page(
            " ([Liu04 7.5.1]: 3.86 times).\n"
            "No evidence on the machine liu2004: multicast_ns and multicast_byte_ns are fitted to 20.0 us "
            "for small broadcasts and 40.0 us for 1836 bytes [Liu04 11.1.3], and ack_ns to the best "
            "number of co-roots",
            stdout);
    printf(".\n%zu collectors are best in the simulation%s; sqrt(N) = %.0f makes the root's work least.\n",
           s->best, s->inside ? "" : " (the first or the last of the list)", sqrt(nodes));
    printf("%zu are best in the model of the paper's design, whose root sends to the co-roots in a tree: "
           "log2 k sends and N / k acknowledgements. An acknowledgement costs %.3g of a send here; k is the "
           "best power of two from k / N to 2 k / N, so 128 of 1024 from 1/8 to 1/4.\n",
           s->best_paper, share);
}

static bool multicast_draw(const char *folder, const struct chart *c)
{
    char path[4200];
    snprintf(path, sizeof(path), "%.4000s/figure-%.16s.svg", folder, c->id);
    FILE *out = fopen(path, "we");
    if (!out) {
        fprintf(stderr, "fishplate-lab sim multicast: cannot write %s: %s.\n", path, strerror(errno));
        return false;
    }
    chart_svg(c, out);
    fclose(out);
    return true;
}

static void multicast_write_json(const struct options *o, const struct study *s)
{
    struct json j = {.out = stdout};
    json_object(&j, NULL);
    json_string(&j, "program", "fishplate-lab sim multicast");
    json_string(&j, "carrier", "simulated");
    json_int(&j, "nodes", (long long)o->nodes);
    json_real(&j, "ack_ns", o->machine.ack_ns);
    json_real(&j, "multicast_ns", o->machine.multicast_ns);
    json_array(&j, "figures");
    chart_json(&s->latency, &j);
    chart_json(&s->throughput, &j);
    json_end(&j);
    json_int(&j, "best_collectors", (long long)s->best);
    json_int(&j, "best_collectors_paper", (long long)s->best_paper);
    json_end(&j);
    putchar('\n');
}

static void multicast_print_text(const struct options *o, struct study *s)
{
    printf("fishplate-lab sim multicast: %zu nodes, window of %zu packets, %zu packets for each "
           "acknowledgement, loss %g (simulated); an acknowledgement takes %g ns of a processor, a multicast "
           "packet %g ns more than a message\n",
           o->nodes, o->window, o->aggregate, o->machine.loss, o->machine.ack_ns, o->machine.multicast_ns);
    chart_table(&s->latency, stdout);
    s->throughput.lines++;
    chart_table(&s->throughput, stdout);
    s->throughput.lines--;
    multicast_print_statements(o, s);
}

static int multicast_run(const struct options *o)
{
    static struct study s;
    const char *failed = multicast_make_latency_chart(o, &s);
    if (!failed)
        failed = multicast_make_throughput_chart(o, &s);
    if (failed) {
        fprintf(stderr, "fishplate-lab sim multicast: %s.\n", failed);
        return 1;
    }
    if (o->json)
        multicast_write_json(o, &s);
    else
        multicast_print_text(o, &s);
    return o->svg && (!multicast_draw(o->svg, &s.latency) || !multicast_draw(o->svg, &s.throughput));
}

int command_sim_multicast(int argc, char **argv)
{
    struct options o;
    int status = multicast_parse(&o, argc, argv);
    if (status)
        return status;
    if (o.help) {
        cli_print_page(usage_text, stdout);
        return 0;
    }
    if (o.measured && !sim_multicast_measure(&o.machine))
        return 1;
    return multicast_run(&o);
}
