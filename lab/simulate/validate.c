/* validate.c: `fishplate-lab sim validate`: compares the simulator with closed forms, with runs that must give
 * equal results, and with measurements on virtual nodes of this machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/sim/job.h"
#include "lab/sim/validate.h"

#include "api/inside.h"
#include "tools/fishplate/command.h"
#include "cli/json.h"
#include "lab/json_read.h"
#include "simulate.h"
#include "cli/options.h"

static const char *const usage_text =
    "Usage: fishplate-lab sim validate [--measured] [--json]\n"
    "\n"
    "Lays the simulator beside closed forms (one message, saturation of a link, the M/D/1 queue) and beside "
    "itself (ranks on other nodes, another time step), and prints how far they differ. Exits with 1 when a "
    "difference is above its bound.\n"
    "\n"
    "  --measured   also beside collectives that are measured now on 2, 4 and 8 virtual nodes of this "
    "machine. The parameters come from a ping-pong and a stream between two of them; all nodes share the "
    "cores of this machine. The error is printed and has no bound: other programs that run meanwhile are not "
    "simulated. About 30 s\n"
    "  --json\n";

enum {
    FITS = 3, /* runs; the best counts, since the first run has cold caches and a slow clock */
    MEASURED_ROWS = 32,
    OUTPUT_MAX = 1 << 20
};

struct measured_row {
    char name[64];
    int nodes;
    double measured, simulated; /* us */
};

struct study {
    struct measured_row rows[MEASURED_ROWS];
    int count;
    struct machine machine;
    char folder[4096]; /* folder of the programs */
};

/* Runs `fishplate bench` on this number of virtual nodes. On failure prints an error and returns NULL. */
static struct value *validate_measure(const struct study *s, int nodes, const char *tests)
{
    char command[9000], *text = malloc(OUTPUT_MAX);
    snprintf(command, sizeof(command),
             "'%s/mpiexec' -n %d -vnodes %d '%s/fishplate' bench --time 0.1 --sizes 8,4k,64k --json %s "
             "2>/dev/null",
             s->folder, nodes, nodes, s->folder, tests);
    FILE *in = text ? popen(command, "r") : NULL;
    size_t len = in ? fread(text, 1, OUTPUT_MAX, in) : 0;
    int status = in ? pclose(in) : -1;
    struct value *v = status == 0 ? value_parse(text, len) : NULL;
    free(text);
    if (!v)
        fprintf(stderr, "fishplate-lab sim validate: this gave no result: %s\n", command);
    return v;
}

/* The best of a test's figures; NAN: the test is not in the document. */
static double validate_best_figure(const struct value *all, const char *test, double bytes)
{
    for (const struct value *v = value_first_element(all, "results"); v; v = v->next)
        if (strcmp(value_text(v, "test"), test) == 0 && value_number(v, "bytes", -1) == bytes)
            return value_number(v, "best", NAN);
    return NAN;
}

/* Assumes that sending and receiving take 40 % of a small-message latency each and the two cables 10 %
 * each; longer messages determine the other parameters. */
static bool validate_fit(struct study *s)
{
    double latency = INFINITY, longer = INFINITY, rate = 0, gap = INFINITY;
    for (int i = 0; i < FITS; i++) {
        struct value *two = validate_measure(s, 2, "latency bw");
        latency = fmin(latency, validate_best_figure(two, "latency", 8) * 1000);
        longer = fmin(longer, validate_best_figure(two, "latency", 4096) * 1000);
        rate = fmax(rate, validate_best_figure(two, "bw", 65536) / 1000);
        gap = fmin(gap, 8 / validate_best_figure(two, "bw", 8) * 1000);
        value_free(two);
    }
    if (!(latency > 0 && isfinite(latency) && isfinite(longer) && rate > 0 && isfinite(gap)))
        return false;
    double copies = longer - latency - 4096 / rate;
    s->machine = machine_preset;
    s->machine.send_ns = s->machine.receive_ns = latency * 0.4;
    s->machine.link_ns = latency * 0.1;
    s->machine.switch_ns = s->machine.header_bytes = 0;
    s->machine.message_ns = gap;
    s->machine.link_rate = rate;
    s->machine.copy_rate = copies > 0 ? 2 * 4096 / copies : 100;
    s->machine.eager_bytes = 16384;
    s->machine.cores = (double)sysconf(_SC_NPROCESSORS_ONLN) < 64 ? (double)sysconf(_SC_NPROCESSORS_ONLN) : 0;
    return true;
}

/* Fits turn_ns by bisection to the smallest measured barrier in which ranks outnumber cores, so that cores
 * change from one rank to another. The comparison then omits this barrier. */
static bool validate_fit_core_changes(struct study *s, double measured, int nodes)
{
    double low = 0, high = 1e6;
    struct job_report r;
    struct job_order o = {.machine = &s->machine,
                          .algorithm = sim_find_selected(COLL_BARRIER, nodes, 0),
                          .ranks = nodes,
                          .per_node = 1,
                          .most_steps = 1 << 20};
    if (s->machine.cores == 0 || nodes <= s->machine.cores || s->machine.turn_ns > 0 || !(measured > 0) ||
        !o.algorithm)
        return false;
    for (int i = 0; i < 40; i++) {
        s->machine.turn_ns = (low + high) / 2;
        job_simulate(&o, &r);
        if (r.failed || r.us > measured)
            high = s->machine.turn_ns;
        else
            low = s->machine.turn_ns;
    }
    return true;
}

static void validate_compare(struct study *s, const struct value *all, enum coll_kind kind, int nodes,
                             size_t bytes)
{
    const char *name = get_library_table()->coll_kind_name((int)kind);
    const struct coll_algorithm *a = sim_find_selected(kind, nodes, bytes);
    struct job_report r;
    struct measured_row *row = &s->rows[s->count];
    double measured = validate_best_figure(all, name, (double)bytes);
    if (!a || !(measured > 0) || s->count == MEASURED_ROWS)
        return;
    struct job_order o = {.machine = &s->machine,
                          .algorithm = a,
                          .ranks = nodes,
                          .per_node = 1,
                          .bytes = bytes,
                          .most_steps = 1 << 20};
    job_simulate(&o, &r);
    if (r.failed)
        return;
    *row = (struct measured_row){.nodes = nodes, .measured = measured, .simulated = r.us};
    snprintf(row->name, sizeof(row->name), "%.20s of %zu bytes, %.20s", name, bytes, a->name);
    s->count++;
}

/* Expects the programs in the folder of this program. */
static bool find_programs(struct study *s)
{
    ssize_t n = readlink("/proc/self/exe", s->folder, sizeof(s->folder) - 1);
    s->folder[n > 0 ? n : 0] = 0;
    char *slash = strrchr(s->folder, '/');
    if (slash)
        *slash = 0;
    return slash != NULL;
}

bool sim_fit_here(struct machine *m)
{
    static struct study s;
    if (!find_programs(&s) || !validate_fit(&s))
        return false;
    for (int nodes = 2; nodes <= 8 && s.machine.cores > 0; nodes *= 2)
        if (nodes > s.machine.cores) {
            struct value *all = validate_measure(&s, nodes, "barrier");
            validate_fit_core_changes(&s, validate_best_figure(all, "barrier", 0), nodes);
            value_free(all);
            break;
        }
    *m = s.machine;
    return true;
}

static bool validate_measure_and_compare(struct study *s)
{
    static const size_t sizes[] = {8, 4096, 65536};
    if (!find_programs(s) || !validate_fit(s))
        return false;
    for (int nodes = 2; nodes <= 8; nodes *= 2) {
        struct value *all = validate_measure(s, nodes, "barrier bcast allreduce allgather");
        if (!all)
            return false;
        if (!validate_fit_core_changes(s, validate_best_figure(all, "barrier", 0), nodes))
            validate_compare(s, all, COLL_BARRIER, nodes, 0);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            validate_compare(s, all, COLL_BCAST, nodes, sizes[i]);
            validate_compare(s, all, COLL_ALLREDUCE, nodes, sizes[i]);
            validate_compare(s, all, COLL_ALLGATHER, nodes, sizes[i]);
        }
        value_free(all);
    }
    return s->count > 0;
}

static int compare_by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of the factors between measured and simulated times, each at least 1. */
static double validate_median_factor(const struct study *s)
{
    double factor[MEASURED_ROWS] = {0};
    for (int i = 0; i < s->count; i++) {
        double f = s->rows[i].simulated / s->rows[i].measured;
        factor[i] = f > 1 ? f : 1 / f;
    }
    qsort(factor, (size_t)s->count, sizeof(factor[0]), compare_by_size);
    return s->count ? factor[s->count / 2] : NAN;
}

static void validate_print_text(const struct validate_row *rows, int count, const struct study *s)
{
    printf("%-12s %-48s %12s %12s %9s\n", "against", "what", "expected", "found", "error");
    for (int i = 0; i < count; i++)
        printf("%-12s %-48s %7.5g %-4s %7.5g %-4s %+8.3f %% %s\n", rows[i].against, rows[i].quantity,
               rows[i].expected, rows[i].unit, rows[i].found, rows[i].unit,
               100 * validate_relative_error(&rows[i]),
               validate_row_is_within_bound(&rows[i]) ? "" : "TOO FAR");
    if (s->count == 0)
        return;
    printf("\n"
           "Measured now on virtual nodes, %g cores; simulated with %.0f ns to send, %.3g GB/s, fitted with "
           "two nodes; %.0f ns from one rank to another on a core, fitted to the smallest barrier of more "
           "ranks than cores:\n"
           "\n"
           "%6s  %-44s %14s %14s %9s\n",
           s->machine.cores, s->machine.send_ns, s->machine.link_rate, s->machine.turn_ns, "nodes", "what",
           "measured us", "simulated us", "error");
    for (int i = 0; i < s->count; i++)
        printf("%6d  %-44s %14.2f %14.2f %+8.0f %%\n", s->rows[i].nodes, s->rows[i].name, s->rows[i].measured,
               s->rows[i].simulated, 100 * (s->rows[i].simulated / s->rows[i].measured - 1));
    printf("\nHalf of them are within a factor of %.2f.\n", validate_median_factor(s));
}

static void validate_write_json(const struct validate_row *rows, int count, const struct study *s)
{
    struct json j = {.out = stdout};
    json_object(&j, NULL);
    json_string(&j, "program", "fishplate-lab sim validate");
    json_array(&j, "checks");
    for (int i = 0; i < count; i++) {
        json_object(&j, NULL);
        json_string(&j, "against", rows[i].against);
        json_string(&j, "what", rows[i].quantity);
        json_real(&j, "expected", rows[i].expected);
        json_real(&j, "found", rows[i].found);
        json_real(&j, "error", validate_relative_error(&rows[i]));
        json_bool(&j, "good", validate_row_is_within_bound(&rows[i]));
        json_end(&j);
    }
    json_end(&j);
    json_array(&j, "measured");
    for (int i = 0; i < s->count; i++) {
        json_object(&j, NULL);
        json_int(&j, "nodes", s->rows[i].nodes);
        json_string(&j, "what", s->rows[i].name);
        json_real(&j, "measured_us", s->rows[i].measured);
        json_real(&j, "simulated_us", s->rows[i].simulated);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    putchar('\n');
}

int command_sim_validate(int argc, char **argv)
{
    struct validate_row rows[VALIDATE_ROWS];
    static struct study s;
    bool json = false, runs = false;
    int wrong = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--measured") == 0) {
            runs = true;
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            cli_print_page(usage_text, stdout);
            return 0;
        } else {
            fprintf(stderr, "fishplate-lab sim validate: '%s' is not an option; see --help.\n", argv[i]);
            return 2;
        }
    }
    int count = validate_all(rows);
    for (int i = 0; i < count; i++)
        wrong += !validate_row_is_within_bound(&rows[i]);
    if (runs && !validate_measure_and_compare(&s))
        wrong++;
    if (json)
        validate_write_json(rows, count, &s);
    else
        validate_print_text(rows, count, &s);
    return wrong ? 1 : 0;
}
