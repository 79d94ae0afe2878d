/* driver.c: `fishplate bench ib`, and what `bench rails` shares with it: options, help, and the topics in turn.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ib.h"
#include "peers.h"

static const struct ib_topic *const ib_topics[] = {&ib_small,      &ib_polling, &ib_flow,
                                                   &ib_rendezvous, &ib_memory,  &ib_reuse};
enum { NTOPICS = sizeof(ib_topics) / sizeof(ib_topics[0]) };

static void usage(void)
{
    printf(
        "Usage: fishplate bench ib [options] [topics]\n\n"
        "Measures what each design of MPI over InfiniBand gains, and prints it beside what the papers say.\n"
        "It starts its own jobs: every rank (or half of them) on a virtual node with a software adapter\n"
        "(mpiexec -vnodes), with the tunables that a table compares. Without names, all topics run:\n\n");
    for (int i = 0; i < NTOPICS; i++)
        printf("  %-11s %s\n", ib_topics[i]->name, ib_topics[i]->doc);
    printf(
        "\nOptions:\n"
        "  --quick     a few points of each table, to check in some seconds that everything runs\n"
        "  --repeat 3  run each job this many times; the best result counts, because other programs only\n   "
        "           make results worse (default 3, with --quick 1)\n"
        "  --json      one JSON document instead of tables; progress is on standard error either way\n"
        "  --help\n\n"
        "In a job with more ranks than cores the ranks take turns: compare figures of one row, not of two.\n"
        "SOFTIB_FABRIC=\"latency=2us rate=3GB/s\" gives the fabric a delay and a limit, as a real one "
        "has.\n\n"
        "Examples:\n"
        "  fishplate bench ib small polling\n"
        "  SOFTIB_FABRIC=\"latency=5us\" fishplate bench ib rendezvous\n"
        "  bench/peers --softib                  the same fabric with Open MPI and perftest beside ours\n");
}

double ib_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* mpiexec stands beside this program. */
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
                "bench %s: there is no mpiexec in the directory of %s; use fishplate from a complete "
                "installation.\n",
                d->command, d->program);
        return false;
    }
    return true;
}

static bool parse(struct ib_driver *d, int argc, char **argv, unsigned *wanted, bool *help)
{
    const struct ib_command *c = d->topics;
    for (int i = 1; i < argc; i++) {
        int topic = 0;
        while (topic < c->ntopics && strcmp(c->topics[topic]->name, argv[i]) != 0)
            topic++;
        if (strcmp(argv[i], "--quick") == 0)
            d->quick = true;
        else if (strcmp(argv[i], "--json") == 0)
            d->json = true;
        else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            *help = true;
        else if (strcmp(argv[i], "--repeat") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0)
            d->repeat = atoi(argv[++i]);
        else if (c->draws && strcmp(argv[i], "--svg") == 0 && i + 1 < argc)
            d->svg = argv[++i];
        else if (c->peers && strcmp(argv[i], "--no-peers") == 0)
            d->no_peers = true;
        else if (topic < c->ntopics)
            *wanted |= 1u << topic;
        else {
            fprintf(stderr, "bench %s: '%s' is neither an option nor a topic; --help lists both.\n", c->name,
                    argv[i]);
            return false;
        }
    }
    if (d->repeat == 0)
        d->repeat = d->quick ? 1 : 3;
    if (*wanted == 0)
        *wanted = (1u << c->ntopics) - 1;
    return true;
}

void ib_draw(struct ib_driver *d, const struct ib_curves *c)
{
    char path[4096];
    if (!d->svg || !d->draw || c->points < 2)
        return;
    snprintf(path, sizeof(path), "%s/%s.svg", d->svg, c->id);
    FILE *f = fopen(path, "we");
    if (!f) {
        fprintf(stderr, "bench %s: cannot write %s.\n", d->command, path);
        d->failures++;
        return;
    }
    d->draw(c, f);
    fclose(f);
    fprintf(stderr, "%sbench %s: wrote %s\n", d->terminal ? "\r\033[K" : "", d->command, path);
}

static int run_topics(struct ib_driver *d, unsigned wanted)
{
    if (d->json)
        printf("{\"program\": \"fishplate bench %s\", \"cores\": %d, \"repeat\": %d, \"quick\": %s,\n "
               "\"tables\": [",
               d->command, d->cores, d->repeat, d->quick ? "true" : "false");
    for (int i = 0; i < d->topics->ntopics; i++)
        if (wanted & (1u << i))
            d->topics->topics[i]->tables(d);
    if (d->terminal)
        fprintf(stderr, "\r\033[K");
    if (d->json)
        printf("],\n \"jobs\": %d, \"failures\": %d, \"seconds\": %.1f}\n", d->jobs, d->failures,
               ib_now() - d->started);
    else
        printf("\n%d jobs, %d failed; %.0f s.%s\n", d->jobs, d->failures, ib_now() - d->started,
               d->failures ? "" : " All data that was checked arrived as sent.");
    return d->failures ? 1 : 0;
}

int ib_command_main(const struct ib_command *command, struct ib_driver *d, int argc, char **argv)
{
    unsigned wanted = 0;
    bool help = false;
    d->topics = command;
    d->command = command->name;
    d->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    d->started = ib_now();
    if (argc > 2 && strcmp(argv[1], "rank") == 0)
        return ib_rank_main(command, argc - 2, argv + 2);
    if (!parse(d, argc, argv, &wanted, &help))
        return 2;
    if (help) {
        command->usage();
        return 0;
    }
    d->terminal = isatty(STDERR_FILENO);
    if (!ib_find_programs(d))
        return 2;
    struct ib_peers peers = {0};
    d->peers = &peers;
    if (command->peers)
        ib_peers_open(&peers, d, command->peers);
    const int status = run_topics(d, wanted);
    ib_peers_close(&peers);
    d->peers = NULL;
    return status;
}

int bench_ib_main(int argc, char **argv)
{
    static const struct ib_command command = {
        .name = "ib", .topics = ib_topics, .ntopics = NTOPICS, .usage = usage};
    struct ib_driver d = {0};
    return ib_command_main(&command, &d, argc, argv);
}
