/* compare.c: --compare: measures all algorithms of one collective operation for each size, with the library's
 * own choice ("auto") first, and recommends the setting that is fastest over all sizes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coll.h"
#include "cli/number.h"

enum { CHOICES_MAX = 24 };

struct comparison {
    struct bench *b;
    const char *operation; /* name of the operation in FISHPLATE_COLL and of the test */
    int n;                 /* number of choices; the first is auto */
    const char *name[CHOICES_MAX];
    double logs[CHOICES_MAX]; /* sums over the sizes of the logarithms of time / time of auto */
    int sizes;
};

static const char *compare_get_setting(const struct comparison *c, int i, char *out, size_t size)
{
    out[0] = 0;
    if (i > 0)
        snprintf(out, size, "%s=%s", c->operation, c->name[i]);
    return out;
}

static const struct bench_test *find_collective_test(const char *operation)
{
    for (int i = 0; i < bench_ntests; i++)
        if (strcmp(bench_tests[i].name, operation) == 0 && bench_tests[i].run == bench_collective)
            return &bench_tests[i];
    return NULL;
}

static void print_names(const struct comparison *c)
{
    if (c->b->rank != 0 || c->b->options.json)
        return;
    fprintf(c->b->out, "%s of %d ranks, best time in us; * is the fastest\n\n%9s", c->operation, c->b->size,
            "size");
    for (int i = 0; i < c->n; i++)
        fprintf(c->b->out, "  %*s ", (int)strlen(c->name[i]) < 10 ? 10 : (int)strlen(c->name[i]), c->name[i]);
    fprintf(c->b->out, "\n");
}

static void print_times(const struct comparison *c, size_t bytes, const double *time)
{
    char size[32];
    int best = 0;
    for (int i = 1; i < c->n; i++)
        best = time[i] < time[best] ? i : best;
    number_print_size(bytes, size);
    fprintf(c->b->out, "%9s", strcmp(c->operation, "barrier") == 0 ? "" : size);
    for (int i = 0; i < c->n; i++)
        fprintf(c->b->out, "  %*.2f%c", (int)strlen(c->name[i]) < 10 ? 10 : (int)strlen(c->name[i]),
                time[i] * 1e6, i == best ? '*' : ' ');
    fprintf(c->b->out, "\n");
    fflush(c->b->out);
}

static void compare_one_size(struct comparison *c, size_t bytes)
{
    struct bench *b = c->b;
    double time[CHOICES_MAX];
    char setting[96];
    for (int i = 0; i < c->n; i++) {
        struct bench_stats s = {0};
        size_t moved = bytes;
        b->host->choose(compare_get_setting(c, i, setting, sizeof(setting)));
        if (!coll_measure(b, c->operation, &moved, &s))
            return;
        b->steps_done++;
        time[i] = s.min > 0 ? s.min : 1e-9;
        if (b->rank == 0) {
            bench_report_algorithm(b, c->operation, c->name[i], moved, &s);
            c->logs[i] += log(time[i] / time[0]);
        }
    }
    c->sizes++;
    if (b->rank == 0 && !b->options.json)
        print_times(c, bytes, time);
}

/* Recommends the setting with the lowest geometric mean over the sizes, if it is 2 % faster than auto. */
static void compare_print_conclusion(const struct comparison *c)
{
    struct bench *b = c->b;
    int best = 0;
    char setting[96], line[128];
    for (int i = 1; i < c->n; i++)
        best = c->logs[i] < c->logs[best] ? i : best;
    const double ratio = exp(c->logs[best] / (c->sizes ? c->sizes : 1));
    if (b->rank != 0)
        return;
    if (ratio > 0.98) {
        bench_report_note(
            b, "Over these sizes the library's own choice is the fastest: leave FISHPLATE_COLL unset.");
        return;
    }
    snprintf(line, sizeof(line), "FISHPLATE_COLL=%s", compare_get_setting(c, best, setting, sizeof(setting)));
    bench_report_setting(b, line);
    bench_report_note(
        b, "Fastest over these sizes (%.2f of the time that the library's own choice takes):", ratio);
    bench_report_note(b, "  export %s", line);
}

void bench_compare(struct bench *b)
{
    struct comparison c = {.b = b, .operation = b->options.compare, .n = 1, .name = {"auto"}};
    const struct bench_test *test = find_collective_test(c.operation);
    const size_t *sizes;
    if (!test || !b->host->algorithm) {
        bench_report_note(b,
                          !test ? "--compare: '%s' is not a collective operation; --help lists them."
                                : "--compare %s: this MPI library offers no way to choose an algorithm.",
                          c.operation);
        b->failed = true;
        return;
    }
    while (c.n < CHOICES_MAX && (c.name[c.n] = b->host->algorithm(c.operation, c.n - 1)) != NULL)
        c.n++;
    bench_team_begin(b, b->size);
    print_names(&c);
    const int nsizes = bench_test_sizes(b, test, &sizes);
    b->steps = nsizes * c.n;
    for (int i = 0; i < nsizes; i++)
        compare_one_size(&c, sizes[i]);
    b->host->choose("");
    bench_team_end(b);
    compare_print_conclusion(&c);
}
