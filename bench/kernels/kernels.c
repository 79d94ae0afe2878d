/* kernels.c: `fishplate bench kernels`: which kernels of which class, the table and the JSON document.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct kernel *const kernels[] = {&kernel_ep,    &kernel_is, &kernel_cg, &kernel_mg,
                                               &kernel_ft,    &kernel_lu, &kernel_bt, &kernel_sp,
                                               &kernel_sweep, &kernel_vis};
enum { KERNELS = sizeof(kernels) / sizeof(kernels[0]) };
static const char class_names[CLASS_COUNT + 1] = "SWAB";

struct kernel_options {
    bool json, help, quiet;
    unsigned wanted;  /* bit i: kernels[i] */
    unsigned classes; /* bit i: class i */
};

static void usage(const struct bench_host *host)
{
    printf("Usage: mpiexec -n 4 %s kernels [options] [kernels]\n\n"
           "Runs kernels of scientific programs, as the NAS parallel benchmarks specify them, and verifies "
           "their\n"
           "results against the published values; sweep and vis, which no suite specifies, verify against "
           "exact\n"
           "solutions. Without names, all run:\n\n",
           host->program);
    for (int i = 0; i < KERNELS; i++)
        printf("  %-5s %s (ranks: %s)\n", kernels[i]->name, kernels[i]->doc, kernels[i]->ranks);
    printf("\nOptions:\n"
           "  --class S        problem size: S (default; takes seconds), W, A, B, or several: SWA\n"
           "  --json           one JSON document instead of the table\n"
           "  --quiet          nothing on standard output; the exit status tells whether results verify\n"
           "  --npb DIR        build and run the original suite too, beside ours; see --npb DIR --help\n"
           "  --help\n\n"
           "The time is that of the part that the specification measures, on the slowest rank. error is the "
           "largest "
           "relative\n"
           "error of a verified value. The exit status is 1 when a result is wrong.\n"
           "Examples:\n"
           "  mpiexec -n 4 %s kernels\n"
           "  mpiexec -n 4 -vnodes 4 %s kernels --class W is cg\n",
           host->program, host->program);
}

static bool parse_classes(struct kernel_options *o, const char *text)
{
    o->classes = 0;
    for (; *text; text++) {
        const char *at = strchr(class_names, toupper((unsigned char)*text));
        if (!at)
            return false;
        o->classes |= 1u << (at - class_names);
    }
    return o->classes != 0;
}

static bool parse_kernel(struct kernel_options *o, const char *name)
{
    for (int i = 0; i < KERNELS; i++)
        if (strcmp(kernels[i]->name, name) == 0) {
            o->wanted |= 1u << i;
            return true;
        }
    return false;
}

static bool parse(struct kernel_options *o, int argc, char **argv, bool speak)
{
    *o = (struct kernel_options){.classes = 1u << CLASS_S};
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        const char *class = NULL;
        if (strncmp(a, "--class=", 8) == 0)
            class = a + 8;
        else if (strcmp(a, "--class") == 0)
            class = i + 1 < argc ? argv[++i] : "";
        if (strcmp(a, "--json") == 0)
            o->json = true;
        else if (strcmp(a, "--quiet") == 0)
            o->quiet = true;
        else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0)
            o->help = true;
        else if (class ? !parse_classes(o, class) : !parse_kernel(o, a)) {
            if (speak && class)
                fprintf(stderr, "bench: '%s' is not a class; there are S, W, A and B.\n", class);
            else if (speak)
                fprintf(stderr, "bench: '%s' is neither an option nor a kernel; --help lists both.\n", a);
            return false;
        }
    }
    if (o->wanted == 0)
        o->wanted = (1u << KERNELS) - 1;
    return true;
}

static void print_head(const struct bench_host *host, const struct kernel_options *o, int ranks)
{
    char transport[BENCH_WAYS_MAX];
    if (o->json) {
        printf("{\"program\": \"%s kernels\", \"ranks\": %d, ", host->program, ranks);
        bench_ways_json(host, ranks, stdout);
        printf(",\n \"results\": [");
        return;
    }
    bench_ways_describe(host, ranks, transport, sizeof(transport));
    printf("%s kernels: %d rank%s, %s\n\n", host->program, ranks, ranks == 1 ? "" : "s", transport);
    printf("%-7s %-6s %10s %12s %-8s %9s   %s\n", "kernel", "class", "seconds", "rate", "unit", "error",
           "result");
    fflush(stdout);
}

static void print_result(const struct kernel_options *o, const struct kernel *k, enum kernel_class class,
                         const struct kernel_result *r, int row)
{
    double rate = r->amount / r->seconds;
    if (o->json)
        printf("%s\n  {\"kernel\": \"%s\", \"class\": \"%c\", \"seconds\": %.6g, \"rate\": %.6g, \"unit\": "
               "\"%s\", "
               "\"error\": %.3g, \"verified\": %s}",
               row ? "," : "", k->name, class_names[class], r->seconds, rate, k->unit, r->error,
               r->verified ? "true" : "false");
    else
        printf("%-7s %-6c %10.3f %12.1f %-8s %9.1e   %s\n", k->name, class_names[class], r->seconds, rate,
               k->unit, r->error, r->verified ? "verified" : "WRONG");
    fflush(stdout);
}

/* One kernel of one class; false when its result is wrong. */
static bool run_one(const struct kernel_options *o, const struct kernel *k, struct kernel_run run, int *row)
{
    struct kernel_result result = {.verified = true};
    if (k->takes && !k->takes(run.size, run.class)) {
        if (run.rank == 0)
            fprintf(stderr, "bench: %s of class %c cannot use %d ranks; it takes %s.\n", k->name,
                    class_names[run.class], run.size, k->ranks);
        return true;
    }
    run.name = k->name;
    run.spoke = MPI_Wtime();
    k->run(&run, &result);
    if (run.rank == 0 && !o->quiet)
        print_result(o, k, run.class, &result, (*row)++);
    return result.verified;
}

static int run_all(const struct bench_host *host, const struct kernel_options *o, struct kernel_run run)
{
    int row = 0;
    bool good = true;
    if (run.rank == 0 && !o->quiet)
        print_head(host, o, run.size);
    for (int i = 0; i < KERNELS; i++)
        for (int c = 0; c < CLASS_COUNT; c++)
            if ((o->wanted & (1u << i)) && (o->classes & (1u << c))) {
                run.class = (enum kernel_class)c;
                good = run_one(o, kernels[i], run, &row) && good;
            }
    if (run.rank == 0 && o->json && !o->quiet)
        printf("\n ]}\n");
    return good ? 0 : 1;
}

int bench_kernels_main(const struct bench_host *host, int argc, char **argv)
{
    struct kernel_options options;
    struct kernel_run run = {0};
    int status = 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &run.comm);
    MPI_Comm_rank(run.comm, &run.rank);
    MPI_Comm_size(run.comm, &run.size);
    if (parse(&options, argc, argv, run.rank == 0)) {
        status = 0;
        if (!options.help)
            status = run_all(host, &options, run);
        else if (run.rank == 0)
            usage(host);
    }
    MPI_Comm_free(&run.comm);
    MPI_Finalize();
    return status;
}
