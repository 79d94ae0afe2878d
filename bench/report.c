/* report.c: writes the report on rank 0: a table that is printed as figures are measured, or one JSON
 * document at the end; progress is printed on standard error.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cli/number.h"

enum { FIGURES_MAX = 256, DOCUMENT_FLAT = 3 };

struct bench_report {
    bool json;
    struct json document;
    FILE *kept_stream; /* notes and ratios, printed at the end */
    char setting[128]; /* setting that --compare recommends; "": none */
    struct figure {    /* figures for the summary */
        char test[24];
        size_t bytes;
        double best;
    } figures[FIGURES_MAX];
    int nfigures;
};

static void open_document(struct bench *b, const char *place)
{
    struct json *j = &b->report->document;
    *j = (struct json){.out = b->out, .flat = DOCUMENT_FLAT};
    json_object(j, NULL);
    json_members(j, "program=%s ranks=%d place=%s", b->host->program, b->size, place);
    bench_transports_json(b->host, b->size, j);
    json_real(j, "init_ms", b->init_time * 1e3);
    json_array(j, "results");
}

static void print_heading(struct bench *b)
{
    char place[512], transport[BENCH_TRANSPORTS_MAX];
    bench_place_describe(b, place, sizeof(place));
    if (b->options.json) {
        open_document(b, place);
        return;
    }
    fprintf(b->out, "%s: %s\n", b->host->program, place);
    bench_transports_describe(b->host, b->size, transport, sizeof(transport));
    fprintf(b->out, "transport: %s\n", transport);
    fprintf(b->out, "MPI_Init took %.1f ms on the slowest rank.\n\n", b->init_time * 1e3);
    if (!b->options.compare)
        fprintf(b->out, "%-21s %8s %12s %12s %12s   %s\n", "test", "size", "best", "median", "p99", "unit");
    fflush(b->out);
}

/* Opens the file of the report; with --summary and without a file the table is discarded. */
static FILE *open_output(const struct bench *b)
{
    const char *path = b->options.output ? b->options.output : b->options.summary ? "/dev/null" : NULL;
    if (b->rank != 0 || !path)
        return stdout;
    FILE *out = fopen(path, "w");
    if (!out) {
        fprintf(stderr, "bench: cannot write %s: %s.\n", path, strerror(errno));
        MPI_Abort(b->comm, 2);
    }
    return out;
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
    progress_start(&b->progress, "bench");
    r->kept_stream = tmpfile();
    b->report = r;
    b->out = open_output(b);
    if (b->rank == 0)
        print_heading(b);
    return r;
}

static void write_row(struct bench *b, const char *test, const char *algorithm, size_t bytes, double best,
                      double median, double p99, const char *unit, const struct bench_stats *s)
{
    struct json *j = &b->report->document;
    json_object(j, NULL);
    json_string(j, "test", test);
    if (algorithm)
        json_string(j, "algorithm", algorithm);
    if (b->options.forced.measured)
        bench_forced_json(&b->options.forced, j);
    json_members(j, "bytes=%lld best=%g median=%g p99=%g unit=%s samples=%d", (long long)bytes, best, median,
                 p99, unit, s->samples);
    json_int(j, "iterations", s->iterations);
    json_end(j);
}

static void print_row(struct bench *b, const char *test, const char *algorithm, size_t bytes, double best,
                      double median, double p99, const char *unit, const struct bench_stats *s)
{
    struct bench_report *r = b->report;
    char size[32];
    number_print_size(bytes, size);
    if (r->nfigures < FIGURES_MAX) {
        struct figure *f = &r->figures[r->nfigures++];
        *f = (struct figure){.bytes = bytes, .best = best};
        snprintf(f->test, sizeof(f->test), "%s", test);
    }
    if (r->json) {
        write_row(b, test, algorithm, bytes, best, median, p99, unit, s);
    } else {
        const bool sizeless = bytes == 0 && strcmp(test, "latency") != 0 && strcmp(test, "bilat") != 0;
        fprintf(b->out, "%-21s %8s %12.3f %12.3f %12.3f   %s\n", test, sizeless ? "" : size, best, median,
                p99, unit);
        if (b->options.forced.measured)
            bench_forced_text(&b->options.forced, b->out);
        fflush(b->out);
    }
    b->figures++;
    if (!r->json && b->out == stdout)
        progress_reset(&b->progress);
    b->options.forced.measured = false;
}

void bench_report_time(struct bench *b, const char *test, size_t bytes, const struct bench_stats *s)
{
    print_row(b, test, NULL, bytes, s->min * 1e6, s->median * 1e6, s->p99 * 1e6, "us", s);
}

void bench_report_rate(struct bench *b, const char *test, size_t bytes, const struct bench_stats *s,
                       double amount, const char *unit)
{
    print_row(b, test, NULL, bytes, amount / s->min, amount / s->median, amount / s->p99, unit, s);
}

void bench_report_algorithm(struct bench *b, const char *test, const char *algorithm, size_t bytes,
                            const struct bench_stats *s)
{
    if (b->report->json)
        print_row(b, test, algorithm, bytes, s->min * 1e6, s->median * 1e6, s->p99 * 1e6, "us", s);
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

/* Prints the stored ratios (kind 'R') or notes ('N'). */
static void report_print_stored(struct bench *b, char kind)
{
    struct bench_report *r = b->report;
    char line[512];
    if (!r->kept_stream)
        return;
    rewind(r->kept_stream);
    while (fgets(line, sizeof(line), r->kept_stream)) {
        line[strcspn(line, "\r\n")] = 0;
        if (line[0] != kind)
            continue;
        char *tab = kind == 'R' ? strchr(line, '\t') : NULL;
        if (tab)
            *tab++ = 0;
        if (!r->json)
            fprintf(b->out, "%s%s\n", kind == 'R' ? "ratio: " : "", line + 1);
        else if (tab)
            json_real(&r->document, line + 1, strtod(tab, NULL));
        else
            json_string(&r->document, NULL, line + 1);
    }
}

static void close_document(struct bench *b)
{
    struct bench_report *r = b->report;
    struct json *j = &r->document;
    json_end(j);
    json_object(j, "ratios");
    report_print_stored(b, 'R');
    json_end(j);
    json_array(j, "notes");
    report_print_stored(b, 'N');
    json_end(j);
    if (b->options.compare)
        json_string(j, "setting", r->setting);
    json_members(j, "wrong=%lld seconds=%g", (long long)b->errors, progress_clock() - b->progress.started);
    json_end(j);
}

/* ---- The summary ---- */

static double report_find_figure(const struct bench_report *r, const char *test, size_t bytes)
{
    for (int i = 0; i < r->nfigures; i++)
        if (strcmp(r->figures[i].test, test) == 0 && r->figures[i].bytes == bytes)
            return r->figures[i].best;
    return 0;
}

static void print_summary(const struct bench *b)
{
    const struct bench_report *r = b->report;
    char transport[BENCH_TRANSPORTS_MAX];
    const double latency = report_find_figure(r, "latency", 8), line = report_find_figure(r, "cacheline", 0),
                 bandwidth = report_find_figure(r, "bw", MI), copy = report_find_figure(r, "memcpy", MI),
                 rate = report_find_figure(r, "rate", 8), barrier = report_find_figure(r, "barrier", 0),
                 allreduce = report_find_figure(r, "allreduce", 8);
    bench_transports_describe(b->host, b->size, transport, sizeof(transport));
    printf("%d ranks, %s:\n", b->size, transport);
    if (latency > 0)
        printf("  latency 8 B        %9.2f us", latency);
    if (latency > 0 && line > 0)
        printf("     (%.1f times that of a cache line between two cores)", latency / line);
    if (bandwidth > 0)
        printf("\n  bandwidth 1 MiB    %9.0f MB/s", bandwidth);
    if (bandwidth > 0 && copy > 0)
        printf("   (%.0f %% of memcpy on one core)", 100 * bandwidth / copy);
    if (rate > 0)
        printf("\n  8 B messages       %9.2f million/s", rate);
    if (barrier > 0 && allreduce > 0)
        printf("\n  barrier, allreduce %9.2f us, %.2f us", barrier, allreduce);
    if (b->errors == 0)
        printf("\n  All data arrived as sent. %.1f s.\n", progress_clock() - b->progress.started);
}

void bench_report_close(struct bench *b)
{
    struct bench_report *r = b->report;
    if (b->rank == 0 && r->json) {
        close_document(b);
    } else if (b->rank == 0) {
        fprintf(b->out, "\n");
        report_print_stored(b, 'R');
        report_print_stored(b, 'N');
        if (b->errors == 0)
            fprintf(b->out, "All data arrived as sent. %.1f s.\n", progress_clock() - b->progress.started);
        if (b->options.summary)
            print_summary(b);
        if (b->errors)
            printf("WRONG DATA: %ld bytes or sums differ from what was sent.\n", b->errors);
    }
    fflush(b->out);
    if (b->out != stdout)
        fclose(b->out);
    if (r->kept_stream)
        fclose(r->kept_stream);
    free(r);
}
