/* driver.c: `fishplate-lab ib`, and what `fishplate-lab rails` shares with it: options, help, and the topics
 * in turn.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/options.h"
#include "ib.h"
#include "peers.h"

static const struct ib_topic *const ib_topics[] = {&ib_small,      &ib_polling, &ib_flow,
                                                   &ib_rendezvous, &ib_memory,  &ib_reuse};
enum { NTOPICS = sizeof(ib_topics) / sizeof(ib_topics[0]) };

static void print_usage(void);
static const struct ib_command ib_command = {
    .name = "ib", .topics = ib_topics, .ntopics = NTOPICS, .usage = print_usage};

static void print_usage(void)
{
    cli_print_page(
        "Usage: fishplate-lab ib [options] [topics]\n"
        "\n"
        "Measures what each design of MPI over InfiniBand gains, and prints it beside what the papers say. "
        "It starts its own jobs: every rank (or half of them) on a virtual node with a software adapter "
        "(mpiexec -vnodes), with the tunables that a table compares. Without names, all topics run:\n"
        "\n",
        stdout);
    for (int i = 0; i < NTOPICS; i++)
        cli_print_text(ib_topics[i]->doc, printf("  %-10s", ib_topics[i]->name), 14, stdout);
    ib_print_options(&ib_command);
    cli_print_page(
        "\n"
        "In a job with more ranks than cores the ranks take turns: compare figures of one row, not of two. "
        "SOFTIB_FABRIC=\"latency=2us rate=3GB/s\" gives the fabric a delay and a limit, as a real one has.\n"
        "\n"
        "Examples:\n"
        "  fishplate-lab ib small polling\n"
        "  SOFTIB_FABRIC=\"latency=5us\" fishplate-lab ib rendezvous\n"
        "  bench/peers --softib                  the same fabric with Open MPI and perftest beside ours\n",
        stdout);
}

double ib_now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Expects mpiexec in the folder of this program. */
bool ib_find_programs(struct ib_driver *d)
{
    ssize_t n = readlink("/proc/self/exe", d->program, sizeof(d->program) - 1);
    if (n <= 0)
        return false;
    d->program[n] = 0;
    const char *slash = strrchr(d->program, '/');
    int len = snprintf(d->mpiexec, sizeof(d->mpiexec), "%.*s/mpiexec", (int)(slash - d->program), d->program);
    if (len < 0 || (size_t)len >= sizeof(d->mpiexec) || access(d->mpiexec, X_OK) != 0) {
        fprintf(stderr,
                "fishplate-lab %s: there is no mpiexec in the directory of %s; use fishplate from a complete "
                "installation.\n",
                d->command, d->program);
        return false;
    }
    return true;
}

static bool driver_read_topic(void *driver, const char *name)
{
    struct ib_driver *d = driver;
    for (int i = 0; i < d->topics->ntopics; i++)
        if (strcmp(d->topics->topics[i]->name, name) == 0) {
            d->wanted |= 1u << i;
            return true;
        }
    return false;
}

#define COMMON_LINES                                                                                      \
    CLI_FLAG_LINE("--quick", struct ib_driver, quick,                                                     \
                  "a few points of each table, to check in some seconds that everything runs"),           \
        CLI_INT_LINE("--repeat", "3", struct ib_driver, repeat, 1, 1000,                                  \
                     "run each job this many times; the best result counts, because other programs only " \
                     "make results worse (default 3, with --quick 1)"),                                   \
        CLI_FLAG_LINE("--json", struct ib_driver, json,                                                   \
                      "one JSON document instead of tables; progress is on standard error either way")

static const struct cli_option plain_options[] = {COMMON_LINES, CLI_END};
static const struct cli_option drawing_options[] = {
    COMMON_LINES, CLI_TEXT_LINE("--svg", "FOLDER", struct ib_driver, svg, "write the curves as SVG pictures"),
    CLI_END};
static const struct cli_option peer_options[] = {
    COMMON_LINES, CLI_TEXT_LINE("--svg", "FOLDER", struct ib_driver, svg, "write the curves as SVG pictures"),
    CLI_FLAG_LINE("--no-peers", struct ib_driver, no_peers, "do not measure other MPI libraries"), CLI_END};

static const struct cli_option *driver_make_options(const struct ib_command *c)
{
    return c->peers ? peer_options : c->draws ? drawing_options : plain_options;
}

void ib_print_options(const struct ib_command *c)
{
    puts("\nOptions:");
    cli_print_options(driver_make_options(c), stdout);
}

static int driver_parse(struct ib_driver *d, int argc, char **argv)
{
    char program[64];
    snprintf(program, sizeof(program), "fishplate-lab %s", d->command);
    const struct cli c = {.program = program,
                          .options = driver_make_options(d->topics),
                          .operand = driver_read_topic,
                          .operands = "a topic"};
    const int next = cli_parse(&c, argc, argv, d);
    if (d->repeat == 0)
        d->repeat = d->quick ? 1 : 3;
    if (d->wanted == 0)
        d->wanted = (1u << d->topics->ntopics) - 1;
    return next;
}

void ib_draw_curves(struct ib_driver *d, const struct ib_curves *c)
{
    char path[4096];
    if (!d->svg || !d->draw || c->points < 2)
        return;
    snprintf(path, sizeof(path), "%s/%s.svg", d->svg, c->id);
    FILE *f = fopen(path, "we");
    if (!f) {
        fprintf(stderr, "fishplate-lab %s: cannot write %s: %s.\n", d->command, path, strerror(errno));
        d->failures++;
        return;
    }
    d->draw(c, f);
    fclose(f);
    fprintf(stderr, "%sfishplate-lab %s: wrote %s\n", d->terminal ? "\r\033[K" : "", d->command, path);
}

static void driver_open_document(struct ib_driver *d)
{
    char program[64];
    struct json *j = &d->document;
    snprintf(program, sizeof(program), "fishplate-lab %s", d->command);
    *j = (struct json){.out = stdout, .flat = 4};
    json_object(j, NULL);
    json_string(j, "program", program);
    json_int(j, "cores", d->cores);
    json_int(j, "repeat", d->repeat);
    json_bool(j, "quick", d->quick);
    json_array(j, "tables");
}

static void driver_close_document(struct ib_driver *d)
{
    struct json *j = &d->document;
    json_end(j);
    json_int(j, "jobs", d->jobs);
    json_int(j, "failures", d->failures);
    json_real(j, "seconds", ib_now_seconds() - d->started);
    json_end(j);
}

static int driver_run_topics(struct ib_driver *d)
{
    if (d->json)
        driver_open_document(d);
    for (int i = 0; i < d->topics->ntopics; i++)
        if (d->wanted & (1u << i))
            d->topics->topics[i]->tables(d);
    if (d->terminal)
        fprintf(stderr, "\r\033[K");
    if (d->json)
        driver_close_document(d);
    else
        printf("\n%d jobs, %d failed; %.0f s.%s\n", d->jobs, d->failures, ib_now_seconds() - d->started,
               d->failures ? "" : " All data that was checked arrived as sent.");
    return d->failures ? 1 : 0;
}

int ib_command_main(const struct ib_command *command, struct ib_driver *d, int argc, char **argv)
{
    d->topics = command;
    d->command = command->name;
    d->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    d->started = ib_now_seconds();
    if (argc > 2 && strcmp(argv[1], "rank") == 0)
        return ib_rank_main(command, argc - 2, argv + 2);
    const int next = driver_parse(d, argc, argv);
    if (next == CLI_HELP)
        command->usage();
    if (next < 0)
        return next == CLI_HELP ? 0 : 2;
    d->terminal = isatty(STDERR_FILENO);
    if (!ib_find_programs(d))
        return 2;
    struct ib_peers peers = {0};
    d->peers = &peers;
    if (command->peers)
        ib_peers_open(&peers, d, command->peers);
    const int status = driver_run_topics(d);
    ib_peers_close(&peers);
    d->peers = NULL;
    return status;
}

int bench_ib_main(int argc, char **argv)
{
    struct ib_driver d = {0};
    return ib_command_main(&ib_command, &d, argc, argv);
}
