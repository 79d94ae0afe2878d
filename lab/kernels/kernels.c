/* kernels.c: `fishplate-lab kernels`: selection of kernels and classes, table and JSON document.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"
#include "lab/ib/ib.h"
#include "cli/json.h"
#include "cli/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct kernel *const kernels[] = {
    &kernel_ep, &kernel_is,    &kernel_cg,    &kernel_mg,    &kernel_ft,    &kernel_lu, &kernel_bt,
    &kernel_sp, &kernel_dt_bh, &kernel_dt_wh, &kernel_dt_sh, &kernel_sweep, &kernel_vis};
enum { KERNELS = sizeof(kernels) / sizeof(kernels[0]) };
static const char class_names[CLASS_COUNT + 1] = "SWAB";

struct kernel_options {
    bool json, help, quiet;
    unsigned wanted;  /* bit i: kernels[i] is selected */
    unsigned classes; /* bit i: class i is selected */
};

static bool kernels_read_classes(void *options, const char *text)
{
    struct kernel_options *o = options;
    o->classes = 0;
    for (; *text; text++) {
        const char *at = strchr(class_names, toupper((unsigned char)*text));
        if (!at)
            return false;
        o->classes |= 1u << (at - class_names);
    }
    return o->classes != 0;
}

static bool kernels_read_kernel(void *options, const char *name)
{
    struct kernel_options *o = options;
    for (int i = 0; i < KERNELS; i++)
        if (strcmp(kernels[i]->name, name) == 0) {
            o->wanted |= 1u << i;
            return true;
        }
    return false;
}

static const struct cli_option options[] = {
    CLI_CALL_LINE("--class", "S", kernels_read_classes,
                  "problem size: S (default; takes seconds), W, A, B, or several: SWA"),
    CLI_FLAG_LINE("--json", struct kernel_options, json, "one JSON document instead of the table"),
    CLI_FLAG_LINE("--quiet", struct kernel_options, quiet,
                  "nothing on standard output; the exit status is 0 if results verify"),
    {.names = "--npb",
     .value = "DIR",
     .help = "build and run the original suite too; see --npb DIR --help"}, /* implemented in npb.c */
    CLI_END};

static void print_usage(void)
{
    cli_print_page(
        "Usage: mpiexec -n 4 fishplate-lab kernels [options] [kernels]\n"
        "\n"
        "Runs kernels of scientific programs, as the NAS parallel benchmarks specify them, and verifies "
        "their results against the published values; sweep and vis, which no suite specifies, verify "
        "against exact solutions. Without names, all run:\n\n",
        stdout);
    for (int i = 0; i < KERNELS; i++) {
        cli_print_text(kernels[i]->doc, printf("  %-5s", kernels[i]->name), 9, stdout);
        cli_print_text(kernels[i]->ranks, printf("         ranks:"), 17, stdout);
    }
    puts("\nOptions:");
    cli_print_options(options, stdout);
    cli_print_page(
        "\n"
        "The time is that of the part that the specification measures, on the slowest rank. error is the "
        "largest relative error of a verified value. The exit status is 1 when a result is wrong. Examples:\n"
        "  mpiexec -n 4 fishplate-lab kernels\n"
        "  mpiexec -n 4 -vnodes 4 fishplate-lab kernels --class W is cg\n",
        stdout);
}

static bool kernels_parse(struct kernel_options *o, int argc, char **argv, bool silent)
{
    const struct cli c = {.program = "fishplate-lab kernels",
                          .options = options,
                          .operand = kernels_read_kernel,
                          .operands = "a kernel",
                          .silent = silent};
    *o = (struct kernel_options){.classes = 1u << CLASS_S};
    const int next = cli_parse(&c, argc, argv, o);
    o->help = next == CLI_HELP;
    if (o->wanted == 0)
        o->wanted = (1u << KERNELS) - 1;
    return next != CLI_INVALID;
}

static void kernels_print_head(const struct bench_host *host, const struct kernel_options *o, int ranks,
                               struct json *j)
{
    char transport[BENCH_TRANSPORTS_MAX];
    if (o->json) {
        json_object(j, NULL);
        json_string(j, "program", "fishplate-lab kernels");
        json_int(j, "ranks", ranks);
        bench_transports_json(host, ranks, j);
        json_array(j, "results");
        return;
    }
    bench_transports_describe(host, ranks, transport, sizeof(transport));
    printf("fishplate-lab kernels: %d rank%s, %s\n\n", ranks, ranks == 1 ? "" : "s", transport);
    printf("%-7s %-6s %10s %12s %-8s %9s   %s\n", "kernel", "class", "seconds", "rate", "unit", "error",
           "result");
    fflush(stdout);
}

/* Sums over all ranks since MPI_Init: frames of the send/receive channel without credit messages, credit
 * messages; maximum of the receive buffers of a connection. */
struct traffic {
    double frames, credits, max_buffers;
};

static struct traffic kernels_count_traffic(const struct kernel_run *run)
{
    double sums[2] = {ib_counter("ib_frames_sent"), ib_counter("ib_credit_messages")};
    struct traffic t = {.max_buffers = ib_counter("ib_receives_posted_max")};
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, run->comm);
    MPI_Allreduce(MPI_IN_PLACE, &t.max_buffers, 1, MPI_DOUBLE, MPI_MAX, run->comm);
    t.frames = sums[0];
    t.credits = sums[1];
    return t;
}

static void kernels_print_result(const struct kernel_options *o, const struct kernel *k,
                                 enum kernel_class class, const struct kernel_result *r,
                                 const struct traffic *t, struct json *j)
{
    double rate = r->amount / r->seconds;
    if (o->json) {
        const char letter[] = {class_names[class], 0};
        json_object(j, NULL);
        json_string(j, "kernel", k->name);
        json_string(j, "class", letter);
        json_real(j, "seconds", r->seconds);
        json_real(j, "rate", rate);
        json_string(j, "unit", k->unit);
        json_real(j, "error", r->error);
        json_bool(j, "verified", r->verified);
        if (t->frames >= 0) {
            json_real(j, "frames", t->frames);
            json_real(j, "credit_messages", t->credits);
            json_real(j, "posted_most", t->max_buffers);
        }
        json_end(j);
    } else {
        printf("%-7s %-6c %10.3f %12.1f %-8s %9.1e   %s\n", k->name, class_names[class], r->seconds, rate,
               k->unit, r->error, r->verified ? "verified" : "WRONG");
    }
    fflush(stdout);
}

/* Runs one kernel of one class; false: the result is wrong. */
static bool kernels_run_one(const struct kernel_options *o, const struct kernel *k, struct kernel_run run,
                            struct json *j)
{
    struct kernel_result result = {.verified = true};
    if (k->accepts_ranks && !k->accepts_ranks(run.size, run.class)) {
        if (run.rank == 0)
            fprintf(stderr, "fishplate-lab kernels: %s of class %c cannot use %d ranks; it accepts %s.\n",
                    k->name, class_names[run.class], run.size, k->ranks);
        return true;
    }
    run.name = k->name;
    run.progress_time = MPI_Wtime();
    k->run(&run, &result);
    const struct traffic t = o->json ? kernels_count_traffic(&run) : (struct traffic){0};
    if (run.rank == 0 && !o->quiet)
        kernels_print_result(o, k, run.class, &result, &t, j);
    return result.verified;
}

static int kernels_run_all(const struct bench_host *host, const struct kernel_options *o,
                           struct kernel_run run)
{
    struct json j = {.out = stdout, .flat = 3};
    bool good = true;
    if (run.rank == 0 && !o->quiet)
        kernels_print_head(host, o, run.size, &j);
    for (int i = 0; i < KERNELS; i++)
        for (int c = 0; c < CLASS_COUNT; c++)
            if ((o->wanted & (1u << i)) && (o->classes & (1u << c))) {
                run.class = (enum kernel_class)c;
                good = kernels_run_one(o, kernels[i], run, &j) && good;
            }
    if (run.rank == 0 && o->json && !o->quiet) {
        json_end(&j);
        json_end(&j);
    }
    return good ? 0 : 1;
}

int bench_kernels_main(const struct bench_host *host, int argc, char **argv)
{
    struct kernel_options chosen;
    struct kernel_run run = {0};
    int status = 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &run.comm);
    MPI_Comm_rank(run.comm, &run.rank);
    MPI_Comm_size(run.comm, &run.size);
    if (kernels_parse(&chosen, argc, argv, run.rank != 0)) {
        status = 0;
        ib_counters_start();
        if (!chosen.help)
            status = kernels_run_all(host, &chosen, run);
        else if (run.rank == 0)
            print_usage();
        ib_counters_stop();
    }
    MPI_Comm_free(&run.comm);
    MPI_Finalize();
    return status;
}
