/* options.c: the command line of the benchmark and its help text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "cli/number.h"
#include "cli/options.h"

static bool read_sizes(void *options, const char *value)
{
    struct bench_options *o = options;
    return number_sizes(value, o->sizes, BENCH_SIZES_MAX, &o->nsizes);
}

static bool read_forced(void *options, const char *value)
{
    return bench_forced_parse(&((struct bench_options *)options)->forced, value);
}

static bool read_test(void *options, const char *name)
{
    struct bench_options *o = options;
    for (int i = 0; i < bench_ntests; i++)
        if (strcmp(bench_tests[i].name, name) == 0) {
            o->wanted |= UINT64_C(1) << i;
            return true;
        }
    return false;
}

static const char *const calls[] = {"rotate", "back-to-back", "barrier", NULL};

static const char *const forms[] = {"blocking", "nonblocking", "persistent", NULL};

static const struct cli_option options[] = {
    CLI_FLAG_LINE("--short", struct bench_options, brief, "the main sizes only, in a few seconds"),
    CLI_FLAG_LINE("--summary", struct bench_options, summary,
                  "a few lines instead of the table: the main figures of the tests that ran"),
    CLI_TEXT_LINE("--output", "FILE", struct bench_options, output,
                  "write the report to this file; with --summary, the table"),
    CLI_CALL_LINE("--sizes", "8,1k,4M", read_sizes, "these sizes for every test that has sizes"),
    CLI_REAL_LINE("--time", "0.5", struct bench_options, seconds, 1e-9, 3600, "seconds for each figure"),
    CLI_INT_LINE(
        "--pairs", "2", struct bench_options, pairs, 1, 1 << 24,
        "pairs of ranks that work at once in latency, bw, bibw, rate, bilat, window and isend (default 1: "
        "ranks 0 and 1)"),
    CLI_INT_LINE("--threads", "4", struct bench_options, threads, 1, 1024,
                 "threads of each rank in the test `threads`; MPI_THREAD_MULTIPLE for all tests"),
    CLI_FLAG_LINE(
        "--one-buffer", struct bench_options, one_buffer,
        "bw from and to one buffer, as perftest does; by default each message of a window has its own"),
    CLI_CHOICE_LINE(
        "--calls", "rotate", struct bench_options, calls, calls,
        "collectives back to back, each with the next root (default); back-to-back: with the same root; "
        "barrier: a barrier before every call, which is not timed"),
    CLI_CHOICE_LINE(
        "--form", "blocking", struct bench_options, form, forms,
        "latency and collectives by blocking calls (default), by nonblocking ones and MPI_Wait, or by "
        "persistent requests"),
    CLI_CHOICE_LINE(
        "--memory", "cuda", struct bench_options, memory, bench_memories,
        "latency, bw, bibw, rate and collectives with buffers in GPU memory: host (default), cuda, host-cuda "
        "(even ranks use host memory, odd ranks GPU memory), cuda-host, pinned (host memory that CUDA has "
        "pinned), cuda-pinned, pinned-cuda"),
    CLI_TEXT_LINE(
        "--compare", "bcast", struct bench_options, compare,
        "all algorithms of that operation in one table, and the FISHPLATE_COLL setting that is fastest over "
        "the sizes"),
    CLI_CALL_LINE(
        "--forced", "r3,get", read_forced,
        "in latency, bw, bibw: the library's own choice of how large messages move, in turns with these "
        "settings of FISHPLATE_RENDEZVOUS, and its time divided by that of the best"),
    CLI_FLAG_LINE("--no-pin", struct bench_options, no_pin,
                  "leave the ranks on the cores that the launcher chose"),
    CLI_FLAG_LINE("--json", struct bench_options, json, "one JSON document instead of the table"),
    CLI_END};

void bench_usage(const struct bench_host *host)
{
    printf("Usage: mpiexec -n 4 %s [options] [tests]\n\n", host->program);
    cli_print_page(
        "Measures this MPI library and verifies the data of every kind of message it sends. Without "
        "names, all tests run:\n\n",
        stdout);
    for (int i = 0; i < bench_ntests; i++)
        cli_print_text(bench_tests[i].doc, printf("  %-20s", bench_tests[i].name), 24, stdout);
    if (host->kinds) {
        puts("\nOther benchmarks, with options of their own:");
        cli_print_page(host->kinds, stdout);
    }
    puts("\nOptions:");
    cli_print_options(options, stdout);
    cli_print_page(
        "\nbest, median and p99 are over batches; a batch is long enough for the clock not to matter.\n\n",
        stdout);
    printf("Examples:\n"
           "  mpiexec -n 2 %s --sizes 8,4k latency bw\n"
           "  mpiexec -n 8 %s --short barrier allreduce\n",
           host->program, host->program);
}

bool bench_parse(struct bench_options *o, int argc, char **argv, bool silent)
{
    const struct cli c = {.program = "fishplate bench",
                          .options = options,
                          .operand = read_test,
                          .operands = "a test",
                          .silent = silent};
    *o = (struct bench_options){.pairs = 1};
    const int next = cli_parse(&c, argc, argv, o);
    o->help = next == CLI_HELP;
    if (o->seconds == 0)
        o->seconds = o->brief ? 0.04 : 0.4;
    if (o->wanted == 0)
        o->wanted = (UINT64_C(1) << bench_ntests) - 1;
    return next != CLI_INVALID;
}
