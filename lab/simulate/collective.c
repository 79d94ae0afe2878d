/* collective.c: `fishplate-lab sim`: the library's collective algorithms on a machine of any size. The
 * simulator is in sim/.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "lab/sim/barrier.h"
#include "lab/sim/graph.h"
#include "lab/sim/job.h"

#include "api/inside.h"
#include "tools/fishplate/command.h"
#include "cli/json.h"
#include "simulate.h"
#include "cli/number.h"
#include "cli/progress.h"
#include "cli/options.h"

enum { RESULTS_MAX = 64 };

struct sim_options {
    enum coll_kind kind;
    size_t nodes[SIM_LIST_MAX], sizes[SIM_LIST_MAX];
    int nnodes, nsizes;
    int per_node, root;
    size_t segment, most_steps;
    const char *algorithm; /* NULL: all */
    struct machine machine;
    struct graph topology; /* used if --topology names a file */
    enum job_rails rails;  /* JOB_RAILS: the fastest of all */
    bool named, json, help;
};

/* Simulated time of one algorithm. */
struct sim_result {
    const struct coll_algorithm *algorithm;
    enum job_rails rails;
    struct job_report report;
};

static const char *const rails_names[JOB_RAILS + 1] = {"stripe", "stages", "ranks", "best"};

static const char *const usage_text =
    "Usage: fishplate-lab sim [options] OPERATION\n"
    "       fishplate-lab sim rails [options]     several adapters per node; see fishplate-lab sim rails "
    "--help\n"
    "       fishplate-lab sim multicast [options] broadcast by hardware multicast; see fishplate-lab sim "
    "multicast --help\n"
    "       fishplate-lab sim flow [options]      small messages under each flow control scheme\n"
    "       fishplate-lab sim memory [options]    memory of a process in a job of any size\n"
    "\n"
    "Runs a collective operation with the library's own algorithms on a simulated machine: nodes, adapters, "
    "and a fat tree of switches with finite buffers, packet by packet. The same input gives the same result "
    "on every machine.\n"
    "\n"
    "Operations: barrier bcast gather scatter allgather alltoall reduce allreduce reduce_scatter scan "
    "exscan\n"
    "\n"
    "Options:\n"
    "  --nodes 16,1024      numbers of nodes (default 16,128,1024)\n"
    "  --sizes 8,64k        bytes of the vector, or of one rank's block (default 8,64k,1M)\n"
    "  --per-node 1         ranks per node; they communicate through shared memory\n"
    "  --algorithm NAME     only this algorithm; NAME:n=3 sets a parameter (fishplate info --coll lists "
    "them) barrier: switch is the one that switches count, for one rank a node\n"
    "  --segment 128k       bytes of one segment in pipelined algorithms\n"
    "  --root 0             rank of the root\n"
    "  --machine FILE       parameters of your machine, one per line: link_rate 25; or what fishplate bench "
    "logp --json has written; or a name: ib100 (below), liu2004 (InfiniHost of 2004)\n"
    "  --set NAME=VALUE     set one of these parameters\n"
    "  --topology FILE      switches and cables of your network, one per line, instead of a fat tree:\n"
    "                         switch leaf[0-1] spine[0-8]      names, with ranges\n"
    "                         node 0-35 leaf[0-1]              18 nodes on each leaf\n"
    "                         link leaf[0-1] spine[0-8] 2 25   two cables of 25 GB/s between each of them\n"
    "  --rails stripe       how messages use several rails (--set rails=2): stripe divides each large "
    "message, stages uses one rail for each stage of the algorithm, ranks one rail for each rank of a node, "
    "best whichever is fastest for an algorithm and a size\n"
    "  --most-steps 40M     skip algorithms with more steps than this, summed over all ranks\n"
    "  --json\n"
    "  --help\n"
    "\n"
    "The default machine, a cluster with 100 Gb/s InfiniBand in round numbers:\n";

static void print_usage(void)
{
    cli_print_page(usage_text, stdout);
    machine_print(&machine_preset, stdout);
    cli_print_page("\nExamples:\n"
                   "  fishplate-lab sim allreduce --nodes 10000 --sizes 8\n"
                   "  fishplate-lab sim barrier --nodes 64,4096 --algorithm nway:n=3\n"
                   "  fishplate-lab sim alltoall --nodes 256 --set link_rate=25 --set buffers=4\n",
                   stdout);
}

static bool parse_int(const char *text, int *out)
{
    long value;
    if (!number_parse_integer(text, 0, (1 << 20) - 1, &value))
        return false;
    *out = (int)value;
    return true;
}

/* Simulates all nodes of the file unless --nodes sets fewer. */
static bool parse_topology(struct sim_options *o, const char *path)
{
    char why[256] = "";
    FILE *in = fopen(path, "r");
    graph_free(&o->topology);
    bool good = in && graph_read(&o->topology, in, why, sizeof(why));
    if (in)
        fclose(in);
    if (!good && why[0])
        fprintf(stderr, "fishplate-lab sim: %s: %s.\n", path, why);
    if (!good)
        return false;
    o->machine.topology = &o->topology;
    o->nodes[0] = o->topology.nodes;
    o->nnodes = 1;
    return true;
}

static bool parse_rails(struct sim_options *o, const char *value)
{
    for (int i = 0; i <= JOB_RAILS; i++)
        if (strcmp(value, rails_names[i]) == 0) {
            o->rails = (enum job_rails)i;
            return true;
        }
    return false;
}

static bool parse_value(void *options, const char *name, const char *value)
{
    struct sim_options *o = options;
    size_t bytes;
    if (strcmp(name, "--nodes") == 0)
        return sim_parse_list(value, o->nodes, &o->nnodes);
    if (strcmp(name, "--sizes") == 0)
        return sim_parse_list(value, o->sizes, &o->nsizes);
    if (strcmp(name, "--per-node") == 0)
        return parse_int(value, &o->per_node) && o->per_node > 0;
    if (strcmp(name, "--root") == 0)
        return parse_int(value, &o->root);
    if (strcmp(name, "--algorithm") == 0)
        return (o->algorithm = value)[0] != 0;
    if (strcmp(name, "--rails") == 0)
        return parse_rails(o, value);
    if (strcmp(name, "--segment") == 0)
        return number_size(value, strlen(value), &o->segment);
    if (strcmp(name, "--machine") == 0)
        return sim_read_machine(&o->machine, value);
    if (strcmp(name, "--topology") == 0)
        return parse_topology(o, value);
    if (strcmp(name, "--set") == 0)
        return machine_set_pair(&o->machine, value);
    if (strcmp(name, "--most-steps") == 0 && number_size(value, strlen(value), &bytes)) {
        o->most_steps = bytes;
        return true;
    }
    return false;
}

static bool parse_kind(void *options, const char *name)
{
    struct sim_options *o = options;
    for (int k = 0; k < COLL_NEIGHBOR_ALLGATHER; k++)
        if (strcmp(get_library_table()->coll_kind_name(k), name) == 0) {
            o->kind = (enum coll_kind)k;
            o->named = true;
            return true;
        }
    return false;
}

/* Returns 0, or the exit status after an error message. */
static int collective_parse(struct sim_options *o, int argc, char **argv)
{
    *o = (struct sim_options){.nodes = {16, 128, 1024},
                              .sizes = {8, 64 * KI, MI},
                              .nnodes = 3,
                              .nsizes = 3,
                              .per_node = 1,
                              .segment = 128 * KI,
                              .most_steps = 40 * MI,
                              .machine = machine_preset};
    const struct sim_command c = {
        "sim", o, &o->help, &o->json, parse_kind, parse_value, "is not a collective operation"};
    int status = sim_parse(&c, argc, argv);
    if (status)
        return status;
    for (int i = 0; i < o->nnodes; i++)
        if (o->nodes[i] < 1 || o->nodes[i] * (size_t)o->per_node > 1 << 20 ||
            o->root >= (int)o->nodes[i] * o->per_node)
            return sim_report_misuse(
                "sim", "is out of range: there must be 1 to 1048576 ranks, and --root must be one of them",
                "--nodes");
    if (!o->named && !o->help)
        return sim_report_misuse("sim", "is missing", "OPERATION");
    return 0;
}

/* The barrier that switches count: no algorithm of the library, because it needs adapters and switches
 * with such a feature. */
static const struct coll_algorithm switch_barrier = {.name = "switch", .kind = COLL_BARRIER};

static bool options_include_switch_barrier(const struct sim_options *o)
{
    return o->kind == COLL_BARRIER && o->per_node == 1 &&
           (!o->algorithm || strcmp(o->algorithm, switch_barrier.name) == 0);
}

/* "nway:n=3": the algorithm and its parameters. NULL: unknown name. */
static const struct coll_algorithm *parse_algorithm(const struct sim_options *o, int *parameter)
{
    char text[64], *save = NULL;
    snprintf(text, sizeof(text), "%s", o->algorithm);
    char *name = strtok_r(text, ":", &save);
    const struct coll_algorithm *a = name ? algorithm_find(o->kind, name) : NULL;
    for (char *word; a && (word = strtok_r(NULL, ":", &save));) {
        bool known = false;
        size_t len = strcspn(word, "=");
        for (int i = 0; i < COLL_PARAMETERS; i++) {
            const struct coll_parameter *p = &a->parameter[i];
            if (p->name && strlen(p->name) == len && strncmp(p->name, word, len) == 0 && word[len])
                known = parse_int(word + len + 1, &parameter[i]) && parameter[i] >= p->min &&
                        parameter[i] <= p->max;
        }
        if (!known)
            return NULL;
    }
    return a && a->generate ? a : NULL;
}

static const char *collective_rules_choice(const struct sim_options *o, int ranks, size_t bytes)
{
    const struct coll_algorithm *a = sim_find_selected(o->kind, ranks, bytes);
    return a ? a->name : "";
}

struct sim_progress {
    struct progress progress;
    uint64_t events;
    double work, all; /* weights (number of nodes) of the completed and of all simulations */
};

static int compare_by_time(const void *a, const void *b)
{
    const struct job_report *x = &((const struct sim_result *)a)->report,
                            *y = &((const struct sim_result *)b)->report;
    if (!x->failed != !y->failed)
        return x->failed ? 1 : -1;
    return (x->us > y->us) - (x->us < y->us);
}

static void collective_print_text(const struct sim_options *o, size_t nodes, size_t bytes,
                                  const struct sim_result *r, int count)
{
    char size[32];
    const char *rules = collective_rules_choice(o, (int)nodes * o->per_node, bytes);
    number_print_size(bytes, size);
    for (int i = 0; i < count; i++) {
        if (r[i].report.failed) {
            printf("%8zu %8s  %-20s %s\n", nodes, size, r[i].algorithm->name, r[i].report.failed);
            continue;
        }
        printf("%8zu %8s  %-20s %12.2f %8.2f %12llu %-7s %s\n", nodes, o->kind == COLL_BARRIER ? "" : size,
               r[i].algorithm->name, r[i].report.us, r[i].report.us / r[0].report.us,
               (unsigned long long)r[i].report.messages, o->machine.rails > 1 ? rails_names[r[i].rails] : "",
               strcmp(r[i].algorithm->name, rules) == 0 ? "the rules' choice" : "");
    }
    fflush(stdout);
}

static void collective_print_json(struct json *j, const struct sim_options *o, size_t nodes, size_t bytes,
                                  const struct sim_result *r, int count)
{
    const char *rules = collective_rules_choice(o, (int)nodes * o->per_node, bytes);
    for (int i = 0; i < count; i++) {
        json_object(j, NULL);
        json_int(j, "nodes", (long long)nodes);
        json_int(j, "bytes", (long long)bytes);
        json_string(j, "algorithm", r[i].algorithm->name);
        if (r[i].report.failed) {
            json_string(j, "failed", r[i].report.failed);
        } else {
            json_real(j, "us", r[i].report.us);
            json_real(j, "first_us", r[i].report.first_us);
            json_int(j, "messages", (long long)r[i].report.messages);
            json_int(j, "events", (long long)r[i].report.events);
            if (o->machine.rails > 1)
                json_string(j, "rails", rails_names[r[i].rails]);
            json_bool(j, "rules", strcmp(r[i].algorithm->name, rules) == 0);
        }
        json_end(j);
    }
}

/* Whether the simulation includes this algorithm for this number of nodes. */
static bool algorithm_is_simulated(const struct sim_options *o, const struct coll_algorithm *a,
                                   const struct coll_algorithm *only, size_t nodes)
{
    const struct coll_shape shape = {
        .kind = o->kind, .size = (int)nodes * o->per_node, .commutative = true, .adjacent = true};
    return a->generate && (!o->algorithm || a == only) && algorithm_fits(a, &shape);
}

static int count_sizes(const struct sim_options *o)
{
    return o->kind == COLL_BARRIER ? 1 : o->nsizes;
}

/* Sum of the weights of all simulations: the number of events grows with the number of nodes. */
static double sum_simulation_work(const struct sim_options *o)
{
    int parameter[COLL_PARAMETERS] = {0};
    const struct coll_algorithm *only = o->algorithm ? parse_algorithm(o, parameter) : NULL;
    double work = 0;
    for (int n = 0; n < o->nnodes; n++)
        for (size_t i = 0; i < algorithms_count(); i++)
            if (algorithm_is_simulated(o, algorithms_get(i), only, o->nodes[n]))
                work += (double)o->nodes[n] * count_sizes(o);
    return work;
}

/* Simulates an algorithm with the use of rails that o->rails selects; JOB_RAILS: with each use, and
 * returns the fastest. */
static void simulate_algorithm(const struct sim_options *o, struct job_order *order, struct sim_result *out,
                               struct sim_progress *done)
{
    const bool best = o->rails == JOB_RAILS && o->machine.rails > 1;
    out->algorithm = order->algorithm;
    for (int i = 0; i < (best ? JOB_RAILS : 1); i++) {
        struct job_report report;
        order->rails = best ? (enum job_rails)i : o->rails == JOB_RAILS ? JOB_RAILS_STRIPE : o->rails;
        job_simulate(order, &report);
        done->events += report.events;
        if (i == 0 || (!report.failed && (out->report.failed || report.us < out->report.us))) {
            out->rails = order->rails;
            out->report = report;
        }
    }
}

/* Simulates all algorithms for one number of nodes and one size; sorts the results, fastest first, and
 * returns their number. */
static int collective_simulate(const struct sim_options *o, size_t nodes, size_t bytes,
                               struct sim_result *results, struct sim_progress *done)
{
    int count = 0, parameter[COLL_PARAMETERS] = {0};
    const struct coll_algorithm *only = o->algorithm ? parse_algorithm(o, parameter) : NULL;
    for (size_t i = 0; i < algorithms_count() && count < RESULTS_MAX; i++) {
        const struct coll_algorithm *a = algorithms_get(i);
        if (!algorithm_is_simulated(o, a, only, nodes))
            continue;
        struct job_order order = {.machine = &o->machine,
                                  .algorithm = a,
                                  .ranks = (int)nodes * o->per_node,
                                  .per_node = o->per_node,
                                  .root = o->root,
                                  .bytes = bytes,
                                  .segment = o->segment,
                                  .most_steps = o->most_steps};
        memcpy(order.parameter, parameter, sizeof(parameter));
        simulate_algorithm(o, &order, &results[count++], done);
        done->work += (double)nodes;
        progress_report(&done->progress, done->work, done->all, "%.1f million events",
                        (double)done->events * 1e-6);
    }
    if (options_include_switch_barrier(o) && count < RESULTS_MAX) {
        results[count].algorithm = &switch_barrier;
        barrier_simulate_switches(&o->machine, (uint32_t)nodes, &results[count].report);
        done->events += results[count++].report.events;
    }
    qsort(results, (size_t)count, sizeof(*results), compare_by_time);
    return count;
}

static int collective_run(const struct sim_options *o)
{
    struct sim_result results[RESULTS_MAX];
    struct json j = {.out = stdout};
    struct sim_progress done = {.all = sum_simulation_work(o)};
    const char *kind = get_library_table()->coll_kind_name((int)o->kind);
    progress_start(&done.progress, "sim");
    if (o->json) {
        json_object(&j, NULL);
        json_string(&j, "program", "fishplate-lab sim");
        json_string(&j, "carrier", "simulated"); /* no figure of this document was measured */
        json_string(&j, "operation", kind);
        json_int(&j, "per_node", o->per_node);
        json_array(&j, "results");
    } else {
        printf("fishplate-lab sim: %s, %d rank%s a node, switches of %.0f ports, links of %g GB/s "
               "(simulated)\n\n",
               kind, o->per_node, o->per_node == 1 ? "" : "s", o->machine.radix, o->machine.link_rate);
        printf("%8s %8s  %-20s %12s %8s %12s %s\n", "nodes", "size", "algorithm", "us", "x best", "messages",
               o->machine.rails > 1 ? "rails" : "");
    }
    for (int n = 0; n < o->nnodes; n++)
        for (int s = 0; s < count_sizes(o); s++) {
            int count = collective_simulate(o, o->nodes[n], o->kind == COLL_BARRIER ? 0 : o->sizes[s],
                                            results, &done);
            if (o->json)
                collective_print_json(&j, o, o->nodes[n], o->sizes[s], results, count);
            else
                collective_print_text(o, o->nodes[n], o->sizes[s], results, count);
        }
    double seconds = progress_clock() - done.progress.started;
    if (o->json) {
        json_end(&j);
        json_int(&j, "events", (long long)done.events);
        json_real(&j, "seconds", seconds);
        json_end(&j);
        putchar('\n');
    } else {
        double used = (double)clock() / CLOCKS_PER_SEC;
        printf("\n%.2f million events in %.2f s (%.2f s of processor time, %.1f million events a second)\n",
               (double)done.events * 1e-6, seconds, used, used > 0 ? (double)done.events * 1e-6 / used : 0);
    }
    return 0;
}

int command_sim(int argc, char **argv)
{
    struct sim_options o;
    int parameter[COLL_PARAMETERS] = {0};
    if (argc > 1 && strcmp(argv[1], "rails") == 0)
        return command_sim_rails(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "multicast") == 0)
        return command_sim_multicast(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "flow") == 0)
        return command_sim_flow(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "memory") == 0)
        return command_sim_memory(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "replay") == 0)
        return command_sim_replay(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "validate") == 0)
        return command_sim_validate(argc - 1, argv + 1);
    int status = collective_parse(&o, argc, argv);
    if (status)
        return status;
    if (o.help) {
        print_usage();
        return 0;
    }
    if (o.algorithm && !parse_algorithm(&o, parameter) && !options_include_switch_barrier(&o))
        status = sim_report_misuse(
            "sim", "is not an algorithm of this operation, or one of its parameters is invalid", o.algorithm);
    else
        status = collective_run(&o);
    graph_free(&o.topology);
    return status;
}
