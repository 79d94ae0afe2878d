/* report.c: what rank 0 prints: a table that grows as figures come in, or one JSON document at the end with
 * progress on standard error meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct bench_report {
    bool json;
    int rows, notes;
    double started, spoke;
    char *kept; /* notes and ratios, for the end */
    size_t kept_len;
    FILE *kept_stream;
    char setting[128]; /* of --compare, empty when there is nothing to set */
};

static const double quiet_seconds = 5;

static void print_head(struct bench *b)
{
    char place[512], transport[BENCH_WAYS_MAX];
    bench_place_describe(b, place, sizeof(place));
    if (b->options.json) {
        printf("{\"program\": ");
        bench_print_string(stdout, b->host->program);
        printf(", \"ranks\": %d, \"place\": ", b->size);
        bench_print_string(stdout, place);
        fputs(", ", stdout);
        bench_ways_json(b->host, b->size, stdout);
        printf(",\n \"init_ms\": %.3f,\n \"results\": [", b->init_time * 1e3);
        return;
    }
    printf("%s: %s\n", b->host->program, place);
    bench_ways_describe(b->host, b->size, transport, sizeof(transport));
    printf("transport: %s\n", transport);
    printf("MPI_Init took %.1f ms on the slowest rank.\n\n", b->init_time * 1e3);
    if (!b->options.compare)
        printf("%-21s %8s %12s %12s %12s   %s\n", "test", "size", "best", "median", "p99", "unit");
    fflush(stdout);
}

struct bench_report *bench_report_open(struct bench *b)
{
    struct bench_report *r = calloc(1, sizeof(*r));
    double slowest = b->init_time;
    MPI_Reduce(&b->init_time, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, b->comm);
    if (!r)
        MPI_Abort(b->comm, 1);
    b->init_time = slowest;
    r->json = b->options.json;
    r->started = r->spoke = MPI_Wtime();
    r->kept_stream = tmpfile();
    b->report = r;
    if (b->rank == 0)
        print_head(b);
    return r;
}

/* `also`: more members of the JSON object. */
static void print_row(struct bench *b, const char *test, const char *also, size_t bytes, double best,
                      double median, double p99, const char *unit, const struct bench_stats *s)
{
    struct bench_report *r = b->report;
    struct bench_forced *f = &b->options.forced;
    char size[32];
    bench_format_bytes(bytes, size);
    if (!r->json) {
        bool sizeless = strcmp(test, "barrier") == 0 || strcmp(test, "cacheline") == 0;
        printf("%-21s %8s %12.3f %12.3f %12.3f   %s\n", test, sizeless ? "" : size, best, median, p99, unit);
        if (f->measured)
            bench_forced_text(f, stdout);
        fflush(stdout);
    } else {
        printf("%s\n  {\"test\": \"%s\", %s", r->rows ? "," : "", test, also);
        if (f->measured)
            bench_forced_json(f, stdout);
        printf("\"bytes\": %zu, \"best\": %.6g, \"median\": %.6g, \"p99\": %.6g, "
               "\"unit\": \"%s\", \"samples\": %d, \"iterations\": %d}",
               bytes, best, median, p99, unit, s->samples, s->iterations);
        if (MPI_Wtime() - r->spoke > quiet_seconds) {
            r->spoke = MPI_Wtime();
            fprintf(stderr, "bench: %.0f s, %d figures so far, last %s %s\n", r->spoke - r->started,
                    r->rows + 1, test, size);
        }
    }
    r->rows++;
    f->measured = false;
}

void bench_report_time(struct bench *b, const char *test, size_t bytes, const struct bench_stats *s)
{
    print_row(b, test, "", bytes, s->min * 1e6, s->median * 1e6, s->p99 * 1e6, "us", s);
}

void bench_report_rate(struct bench *b, const char *test, size_t bytes, const struct bench_stats *s,
                       double amount, const char *unit)
{
    print_row(b, test, "", bytes, amount / s->min, amount / s->median, amount / s->p99, unit, s);
}

void bench_report_algorithm(struct bench *b, const char *test, const char *algorithm, size_t bytes,
                            const struct bench_stats *s)
{
    char also[96];
    snprintf(also, sizeof(also), "\"algorithm\": \"%s\", ", algorithm);
    if (b->report->json)
        print_row(b, test, also, bytes, s->min * 1e6, s->median * 1e6, s->p99 * 1e6, "us", s);
}

void bench_report_setting(struct bench *b, const char *setting)
{
    snprintf(b->report->setting, sizeof(b->report->setting), "%s", setting);
}

void bench_report_ratio(struct bench *b, const char *what, double ratio)
{
    struct bench_report *r = b->report;
    if (r->kept_stream)
        fprintf(r->kept_stream, r->json ? "R%s\t%.3f\n" : "R%s: %.2f\n", what, ratio);
}

void bench_report_note(struct bench *b, const char *fmt, ...)
{
    struct bench_report *r = b->report;
    va_list ap;
    if (b->rank != 0 || !r->kept_stream)
        return;
    fputc('N', r->kept_stream);
    va_start(ap, fmt);
    vfprintf(r->kept_stream, fmt, ap);
    va_end(ap);
    fputc('\n', r->kept_stream);
}

/* Lines of one kind ('R'atios or 'N'otes) among what was kept. */
static void print_kept(struct bench_report *r, char kind)
{
    char line[512];
    int n = 0;
    if (!r->kept_stream)
        return;
    rewind(r->kept_stream);
    while (fgets(line, sizeof(line), r->kept_stream)) {
        line[strcspn(line, "\r\n")] = 0;
        if (line[0] != kind)
            continue;
        if (!r->json) {
            printf("%s%s\n", kind == 'R' ? "ratio: " : "", line + 1);
            continue;
        }
        char *tab = kind == 'R' ? strchr(line, '\t') : NULL;
        if (tab)
            *tab++ = 0;
        printf("%s", n++ ? ", " : "");
        bench_print_string(stdout, line + 1);
        if (tab)
            printf(": %s", tab);
    }
}

void bench_report_close(struct bench *b)
{
    struct bench_report *r = b->report;
    if (b->rank == 0 && r->json) {
        printf("],\n \"ratios\": {");
        print_kept(r, 'R');
        printf("},\n \"notes\": [");
        print_kept(r, 'N');
        printf("],\n ");
        if (b->options.compare) {
            printf("\"setting\": ");
            bench_print_string(stdout, r->setting);
            printf(", ");
        }
        printf("\"wrong\": %ld, \"seconds\": %.2f}\n", b->errors, MPI_Wtime() - r->started);
    } else if (b->rank == 0) {
        printf("\n");
        print_kept(r, 'R');
        print_kept(r, 'N');
        if (b->errors == 0)
            printf("All data arrived as sent. %.1f s.\n", MPI_Wtime() - r->started);
        else
            printf("WRONG DATA: %ld bytes or sums differ from what was sent.\n", b->errors);
    }
    fflush(stdout);
    if (r->kept_stream)
        fclose(r->kept_stream);
    free(r);
}
