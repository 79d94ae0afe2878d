/* prof_html.c: writes the report as one HTML page: tiles and ranks here, charts in prof_charts.c. The page
 * loads nothing, and its colours follow the reader's light or dark setting.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "html.h"
#include "prof.h"
#include "prof_charts.h"
#include "report.h"

static const char style[] =
#include "prof.css.inc"
    ;

static void html_tile(FILE *out, const char *value, const char *what)
{
    fputs("<div class=\"tile\">", out);
    html_put(out, "b", NULL, "%s", value);
    html_put(out, "span", NULL, "%s", what);
    fputs("</div>\n", out);
}

static void write_tiles(const struct prof_job *job, FILE *out)
{
    char text[64], small[PROF_TEXT];
    const uint64_t messages = job->p2p_classes.all;
    fputs("<div class=\"tiles\">\n", out);
    html_tile(out, prof_format_seconds(job->on / job->nrecords, small), "recorded, a rank");
    snprintf(text, sizeof(text), "%.1f %%", prof_compute_percent(job->mpi, job->on));
    html_tile(out, text, "of it in MPI");
    snprintf(text, sizeof(text), "%" PRIu64, messages);
    html_tile(out, text, "messages sent");
    html_tile(out, prof_format_bytes((double)job->p2p_classes.bytes, small), "in messages");
    snprintf(text, sizeof(text), "%" PRIu64, job->coll_classes.all);
    html_tile(out, text, "collective calls");
    if (job->reuse.accesses) {
        snprintf(text, sizeof(text), "%.1f %%",
                 prof_compute_percent((double)job->reuse.reused, (double)job->reuse.accesses));
        html_tile(out, text, "buffer reuse");
    }
    if (job->sent.messages) {
        snprintf(text, sizeof(text), "%.1f %%",
                 prof_compute_percent((double)job->within.messages, (double)job->sent.messages));
        html_tile(out, text, "of messages within a node");
    }
    fputs("</div>\n", out);
}

static void write_peers(const struct prof_job *job, FILE *out)
{
    if (!job->npairs && !job->ncarried)
        return;
    html_section(
        out, "Peers",
        job->ncarried
            ? "Who sent how much to whom: all messages of the library, those of collectives among them. "
              "What ranks of a node do in memory they share is no message."
            : "Who sent how much to whom, point to point.");
    prof_chart_peers(job, out);
    html_put(out, "p", NULL, "Point to point, within a node: %.1f %% of the messages, %.1f %% of the bytes.",
             prof_compute_percent((double)job->within.messages, (double)job->sent.messages),
             prof_compute_percent((double)job->within.bytes, (double)job->sent.bytes));
    if (job->outside.messages)
        html_put(out, "p", NULL, "%" PRIu64 " messages went to processes outside this job's world.",
                 job->outside.messages);
    html_section_end(out);
}

static void write_ranks(const struct prof_job *job, FILE *out)
{
    html_section(
        out, "Where time goes",
        job->threaded
            ? "A bar for each rank, as shares of its recorded time; the threads of a rank are added up."
            : "A bar for each rank, as shares of its recorded time.");
    prof_chart_ranks(job, out);
    html_section_end(out);
}

void prof_write_html(const struct prof_job *job, FILE *out)
{
    struct report r = {.out = out, .html = true};
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n",
          out);
    html_put(out, "title", NULL, "%s: MPI profile", job->program);
    fprintf(out, "\n<style>\n%s\n</style>\n</head>\n<body>\n<main>\n", style);
    html_put(out, "h1", NULL, "%s", job->program);
    html_put(out, "p", NULL, "%d rank%s on %d node%s", job->size, job->size == 1 ? "" : "s", job->nodes,
             job->nodes == 1 ? "" : "s");
    fputc('\n', out);
    prof_html_verdict(job, out);
    write_tiles(job, out);
    prof_html_run(job, out);
    write_ranks(job, out);
    prof_write_tables(job, true, &r);
    write_peers(job, out);
    prof_report_links(job, &r);
    fputs("<footer>Written by fishplate prof; <code>fishplate prof --help</code> explains how to read "
          "it.</footer>\n"
          "</main>\n</body>\n</html>\n",
          out);
}
