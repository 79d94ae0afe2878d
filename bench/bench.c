/* bench.c: runs the benchmark from MPI_Init to MPI_Finalize: selects the tests and their ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

/* Returns the number of ranks that take part in a test; 0 if the test needs more ranks. */
static int count_team(const struct bench *b, const struct bench_test *test)
{
    if (test->team == TEAM_ALL)
        return b->size;
    if (test->team == TEAM_ONE)
        return 1;
    const int wanted = test->team == TEAM_PAIRS ? b->options.pairs : 1;
    return 2 * (wanted < b->size / 2 ? wanted : b->size / 2);
}

/* True if the test cannot run without --threads: MPI_THREAD_MULTIPLE would make all other tests slower. */
static bool needs_threads(const struct bench *b, const struct bench_test *test)
{
    return test->run == bench_threads && b->options.threads == 0;
}

static void run_sizes(struct bench *b, const struct bench_test *test)
{
    const size_t *sizes;
    const int n = bench_test_sizes(b, test, &sizes);
    for (int i = 0; i < n; i++) {
        test->run(b, test, sizes[i]);
        b->steps_done++;
    }
}

static int count_steps(const struct bench *b)
{
    const size_t *sizes;
    int steps = 0;
    for (int i = 0; i < bench_ntests; i++) {
        const struct bench_test *test = &bench_tests[i];
        if (b->options.wanted >> i & 1 && count_team(b, test) > 0 && !needs_threads(b, test))
            steps += bench_test_sizes(b, test, &sizes);
    }
    return steps;
}

static void run_test(struct bench *b, const struct bench_test *test)
{
    int active = count_team(b, test);
    if (active == 0) {
        bench_report_note(b, "%s needs two ranks: mpiexec -n 2 %s %s", test->name, b->host->program,
                          test->name);
        return;
    }
    if (needs_threads(b, test)) {
        bench_report_note(b, "%s: mpiexec -n 2 %s --threads 2 %s", test->name, b->host->program, test->name);
        return;
    }
    bench_team_begin(b, active);
    if (b->team != MPI_COMM_NULL)
        run_sizes(b, test);
    bench_team_end(b);
}

static int bench_run_tests(struct bench *b)
{
    b->place = bench_place_find(b);
    b->steps = b->options.compare ? 0 : count_steps(b);
    bench_report_open(b);
    if (b->options.compare)
        bench_compare(b);
    for (int i = 0; i < bench_ntests && !b->options.compare; i++)
        if (b->options.wanted >> i & 1)
            run_test(b, &bench_tests[i]);
    long errors = b->errors;
    MPI_Allreduce(&errors, &b->errors, 1, MPI_LONG, MPI_SUM, b->comm);
    bench_report_close(b);
    bench_place_free(b->place);
    return b->errors ? 1 : b->failed ? 2 : 0;
}

int bench_main(const struct bench_host *host, int argc, char **argv)
{
    struct bench b = {.host = host, .comm = MPI_COMM_NULL, .team = MPI_COMM_NULL};
    double start = progress_clock();
    /* The command line is parsed after MPI_Init; only --threads must be known before. */
    bool threads = false;
    for (int i = 1; i < argc; i++)
        threads |= strncmp(argv[i], "--threads", strlen("--threads")) == 0;
    int level = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    b.threads_allowed = threads && level == MPI_THREAD_MULTIPLE;
    b.init_time = progress_clock() - start;
    MPI_Comm_dup(MPI_COMM_WORLD, &b.comm);
    MPI_Comm_rank(b.comm, &b.rank);
    MPI_Comm_size(b.comm, &b.size);

    int status = 2;
    if (bench_parse(&b.options, argc, argv, b.rank != 0)) {
        status = 0;
        if (!b.options.help)
            status = bench_run_tests(&b);
        else if (b.rank == 0)
            bench_usage(host);
    }
    MPI_Comm_free(&b.comm);
    MPI_Finalize();
    return status;
}
