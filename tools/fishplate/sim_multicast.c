/* sim_multicast.c: `fishplate sim multicast`: broadcast by the switches' multicast at sizes that nobody has, with the library's
 * own protocol, beside a broadcast by messages; the figures and statements of [Liu04 7.5].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../bench/bench.h"
#include "../../sim/job.h"
#include "../../sim/multicast.h"

#include "command.h"
#include "json.h"
#include "sim_words.h"

struct options {
    size_t nodes, packets, window, aggregate, timeout_us;
    size_t sizes[SIM_LIST_MAX], collectors[SIM_LIST_MAX];
    int nsizes, ncollectors;
    struct machine machine;
    bool json, help;
};

static const char *const usage_text =
    "Usage: fishplate sim multicast [options]\n\n"
    "Broadcasts by the multicast of simulated switches, made reliable by the library's own protocol: a "
    "window of packets,\n"
    "acknowledgements collected by the root and by co-roots, packets that are sent again. Two tables:\n"
    "  latency     one broadcast of a packet beside a binomial tree of messages, by size [Liu04 figure 7.9]\n"
    "  throughput  many broadcasts behind each other, by the number of collectors: the root and its "
    "co-roots\n"
    "              [Liu04 figure 7.10]\n\n"
    "Options:\n"
    "  --nodes 1024\n"
    "  --sizes 8,64,...     bytes of a broadcast, at most one packet (default 8 to 1k)\n"
    "  --collectors 1,2,... root and co-roots (default 1, 2, 4, ... up to the number of nodes)\n"
    "  --packets 200        broadcasts behind each other\n"
    "  --window 64          packets that are kept until all have acknowledged them\n"
    "  --aggregate 1        packets for each acknowledgement\n"
    "  --timeout 1000       us until an unacknowledged packet is sent again\n"
    "  --machine liu2004    a preset or a file, see fishplate sim --help\n"
    "  --set NAME=VALUE     one parameter of the machine; loss=0.001 loses a thousandth of the packets on "
    "every link\n"
    "  --json\n"
    "  --help\n\n"
    "Example:\n"
    "  fishplate sim multicast --machine ib100 --nodes 4096 --aggregate 8 --set loss=0.0001\n";

static bool parse_count(const char *text, size_t least, size_t most, size_t *out)
{
    return bench_parse_bytes(text, strlen(text), out) && *out >= least && *out <= most;
}

static bool parse_value(void *options, const char *name, const char *value)
{
    struct options *o = options;
    if (strcmp(name, "--nodes") == 0)
        return parse_count(value, 2, 1 << 16, &o->nodes);
    if (strcmp(name, "--sizes") == 0)
        return sim_list(value, o->sizes, &o->nsizes);
    if (strcmp(name, "--collectors") == 0)
        return sim_list(value, o->collectors, &o->ncollectors);
    if (strcmp(name, "--packets") == 0)
        return parse_count(value, 1, 1 << 20, &o->packets);
    if (strcmp(name, "--window") == 0)
        return parse_count(value, 1, 1 << 12, &o->window);
    if (strcmp(name, "--aggregate") == 0)
        return parse_count(value, 1, 64, &o->aggregate);
    if (strcmp(name, "--timeout") == 0)
        return parse_count(value, 1, 1000000, &o->timeout_us);
    if (strcmp(name, "--machine") == 0)
        return sim_machine(&o->machine, value);
    return strcmp(name, "--set") == 0 && machine_set_pair(&o->machine, value);
}

static int parse(struct options *o, int argc, char **argv)
{
    *o = (struct options){.nodes = 1024,
                          .packets = 200,
                          .window = 64,
                          .aggregate = 1,
                          .timeout_us = 1000,
                          .sizes = {8, 32, 128, 512, 1024},
                          .nsizes = 5};
    machine_named(&o->machine, "liu2004");
    const struct sim_command c = {"sim multicast", o, &o->help, &o->json, NULL, parse_value, NULL};
    int status = sim_parse(&c, argc, argv);
    if (status)
        return status;
    for (size_t k = 1;
         o->ncollectors < SIM_LIST_MAX && !(o->ncollectors && o->collectors[0] != 1) && k <= o->nodes; k *= 2)
        if (o->ncollectors == 0 || o->collectors[o->ncollectors - 1] == k / 2)
            o->collectors[o->ncollectors++] = k;
    for (int i = 0; i < o->nsizes; i++)
        if ((double)o->sizes[i] > o->machine.mtu)
            return sim_complain("sim multicast", "is larger than a packet of this machine (--set mtu=...)",
                                "--sizes");
    for (int i = 0; i < o->ncollectors; i++)
        if (o->collectors[i] < 1 || o->collectors[i] > o->nodes)
            return sim_complain("sim multicast", "must be 1 to the number of nodes", "--collectors");
    return 0;
}

static struct multicast_report broadcast(const struct options *o, size_t bytes, size_t collectors,
                                         size_t packets)
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

static double by_messages(const struct options *o, size_t bytes)
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

static const char *latency(const struct options *o, struct json *j, double *most)
{
    if (o->json)
        json_array(j, "latency");
    else
        printf("%10s %16s %16s %8s\n", "size", "messages us", "multicast us", "x");
    for (int i = 0; i < o->nsizes; i++) {
        char size[32];
        double messages = by_messages(o, o->sizes[i]);
        struct multicast_report r = broadcast(o, o->sizes[i], 1, 1);
        if (r.failed || messages == 0)
            return r.failed ? r.failed : "no broadcast by messages";
        *most = messages / r.us > *most ? messages / r.us : *most;
        bench_format_bytes(o->sizes[i], size);
        if (!o->json) {
            printf("%10s %16.2f %16.2f %8.2f\n", size, messages, r.us, messages / r.us);
            continue;
        }
        json_object(j, NULL);
        json_int(j, "bytes", (long long)o->sizes[i]);
        json_real(j, "messages_us", messages);
        json_real(j, "multicast_us", r.us);
        json_end(j);
    }
    if (o->json)
        json_end(j);
    return NULL;
}

static void show_throughput(const struct options *o, struct json *j, size_t collectors,
                            const struct multicast_report *r)
{
    double each = r->us / (double)o->packets;
    if (!o->json) {
        printf("%10zu %16.3f %16.0f %10llu %8llu %8llu\n", collectors, each, 1e6 / each,
               (unsigned long long)r->acks, (unsigned long long)r->again, (unsigned long long)r->lost);
        return;
    }
    json_object(j, NULL);
    json_int(j, "collectors", (long long)collectors);
    json_real(j, "us", each);
    json_int(j, "acks", (long long)r->acks);
    json_int(j, "again", (long long)r->again);
    json_int(j, "lost", (long long)r->lost);
    json_end(j);
}

static const char *throughput(const struct options *o, struct json *j, size_t *best, bool *inside)
{
    double first = 0, last = 0, least = 0;
    if (o->json)
        json_array(j, "throughput");
    else
        printf("\n%10s %16s %16s %10s %8s %8s\n", "collectors", "us a broadcast", "broadcasts/s", "acks",
               "again", "lost");
    for (int i = 0; i < o->ncollectors; i++) {
        struct multicast_report r = broadcast(o, o->sizes[o->nsizes - 1], o->collectors[i], o->packets);
        if (r.failed)
            return r.failed;
        first = i ? first : r.us;
        last = r.us;
        if (i == 0 || r.us < least) {
            least = r.us;
            *best = o->collectors[i];
        }
        show_throughput(o, j, o->collectors[i], &r);
    }
    *inside = least < first && least < last;
    if (o->json)
        json_end(j);
    return NULL;
}

static void statements(const struct options *o, double most, size_t best, bool inside)
{
    bool near = most > 0.5 * 3.86 && most < 2 * 3.86;
    printf("\n%s  [Liu04 7.5.1] multicast is up to 3.86 times as fast with 1024 nodes\n         found: %.2f "
           "times with %zu "
           "nodes%s\n",
           near ? "agrees " : "DIFFERS", most, o->nodes,
           near ? ""
                : "\n         why: not known; a broadcast costs the root one send here, and the paper's "
                  "prototype more");
    printf("%s  [Liu04 7.5.2] too few co-roots and too many are both slow\n         found: %zu collectors "
           "are best\n",
           inside ? "agrees " : "DIFFERS", best);
    printf("%s  [Liu04 7.5.2] 128 co-roots are best for 1024 nodes\n         found: %zu collectors of %zu "
           "nodes%s\n",
           best == 128 ? "agrees " : "DIFFERS", best, o->nodes,
           best == 128 ? ""
                       : "\n         why: the paper's root sends to each co-root by itself, in a tree; here "
                         "co-roots get the "
                         "multicast and\n         acknowledge to the root, so the root's work and a "
                         "co-root's are alike at the "
                         "square root of the nodes");
}

static int run(const struct options *o)
{
    struct json j = {.out = stdout};
    double most = 0;
    size_t best = 0;
    bool inside = false;
    if (o->json) {
        json_object(&j, NULL);
        json_string(&j, "program", "fishplate sim multicast");
        json_string(&j, "carrier", "simulated");
        json_int(&j, "nodes", (long long)o->nodes);
    } else {
        printf("fishplate sim multicast: %zu nodes, window of %zu packets, %zu packets for each "
               "acknowledgement, loss %g "
               "(simulated)\n\n",
               o->nodes, o->window, o->aggregate, o->machine.loss);
    }
    const char *failed = latency(o, &j, &most);
    if (!failed)
        failed = throughput(o, &j, &best, &inside);
    if (failed) {
        fprintf(stderr, "fishplate sim multicast: %s.\n", failed);
        return 1;
    }
    if (o->json) {
        json_int(&j, "best_collectors", (long long)best);
        json_end(&j);
        putchar('\n');
    } else {
        statements(o, most, best, inside);
    }
    return 0;
}

int command_sim_multicast(int argc, char **argv)
{
    struct options o;
    int status = parse(&o, argc, argv);
    if (status)
        return status;
    if (o.help) {
        fputs(usage_text, stdout);
        return 0;
    }
    return run(&o);
}
