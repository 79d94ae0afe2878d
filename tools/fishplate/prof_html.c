/* prof_html.c: the report as one page: tables here, charts in prof_charts.c. Nothing is loaded from
 * elsewhere, and colours follow the reader's choice of light or dark.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "html.h"
#include "prof.h"
#include "prof_charts.h"
#include "report.h"

static const char style[] =
    ":root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1c2430;--soft:#5b6675;--line:#e1e5ea;"
    "--k0:#2f6fb7;--k1:#d98a1f;--k2:#2a9d78;--k3:#8a5cc2;--k4:#8c6d46;--k5:#7b8794;--app:#d5dbe2;--heat:#"
    "2f6fb7;"
    "--good:#2a9d78;--costly:#d98a1f;--bad:#c0392b}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#12161b;--card:#1b2129;--ink:#e6eaf0;--soft:#98a4b3;"
    "--line:#2c3540;--k0:#5b9be0;--k1:#e5a84d;--k2:#4cc29a;--k3:#b08be6;--k4:#c4a57a;--k5:#8d99a8;--app:#"
    "38424e;"
    "--heat:#5b9be0;--good:#4cc29a;--costly:#e5a84d;--bad:#ff7b66}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}\n"
    "main{max-width:1400px;margin:0 auto;padding:28px 20px 60px}h1{font-size:24px;margin:0 0 "
    "2px;overflow-wrap:anywhere}"
    "h2{font-size:17px;margin:0 0 4px}p{margin:4px 0 12px;color:var(--soft);max-width:75em}"
    "code{font:13px ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}\n"
    "section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px;"
    "margin-top:18px;overflow-x:auto}\n"
    ".verdict{border-left:5px solid var(--good)}.verdict.costly{border-left-color:var(--costly)}"
    ".verdict.broken{border-left-color:var(--bad)}.verdict ol{margin:6px 0 0;padding-left:22px}"
    ".verdict li{margin:4px 0;max-width:75em}.verdict li:only-child{list-style:none;margin-left:-22px}"
    ".cost{color:var(--soft)}.missing{color:var(--ink)}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:3px 16px;margin:0}dt{color:var(--soft)}"
    "dd{margin:0;font:13px/1.7 ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(120px,1fr));gap:12px;margin-top:18px}\n"
    ".tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 16px}"
    ".tile b{display:block;font-size:20px;font-weight:600;white-space:nowrap}.tile "
    "span{color:var(--soft);font-size:13px}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}"
    "th{color:var(--soft);font-weight:500;font-size:13px}th:first-child,td:first-child{text-align:left}"
    "tr:last-child td{border-bottom:0}td:first-child{font:13px ui-monospace,Menlo,Consolas,monospace}\n"
    ".bar{display:inline-block;width:90px;height:9px;border-radius:3px;background:var(--line);vertical-align:"
    "middle;"
    "margin-right:8px;overflow:hidden}.bar i{display:block;height:100%}.bar.two i{float:left}\n"
    ".num{display:inline-block;min-width:52px}"
    ".legend "
    "span{display:inline-block;margin-right:16px;color:var(--soft);font-size:13px;white-space:nowrap}.legend "
    "i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;vertical-align:-1px}\n"
    ".b0{background:var(--k0)}.b1{background:var(--k1)}.b2{background:var(--k2)}.b3{background:var(--k3)}"
    ".b4{background:var(--k4)}.b5{background:var(--k5)}.ba{background:var(--app)}.bh{background:var(--heat)}"
    "\n"
    ".rows{display:grid;grid-template-columns:max-content 1fr max-content;gap:4px 10px;align-items:center;"
    "font-size:13px;color:var(--soft);font-variant-numeric:tabular-nums;margin-top:8px}"
    ".rows>span:nth-child(3n+1),.rows>span:nth-child(3n){text-align:right;white-space:nowrap}"
    ".line{display:flex;height:15px;background:var(--line);border-radius:3px;overflow:hidden}"
    ".pair{display:grid;gap:2px}.pair i{display:block;height:7px;border-radius:2px;min-width:2px}\n"
    "svg{display:block;max-width:max(100%,300px);height:auto}svg text{fill:var(--soft);font-size:12px}"
    ".heat{fill:var(--heat)}.frame{fill:none;stroke:var(--line)}\n"
    "footer{margin-top:22px;color:var(--soft);font-size:13px}\n"
    /* A wide table scrolls horizontally below a fixed first column; a shadow at the edge shows that it
     * continues. */
    ".wide{overflow-x:auto;background:linear-gradient(to right,var(--card) 30%,transparent) 0/24px 100%,"
    "linear-gradient(to left,var(--card) 30%,transparent) 100%/24px 100%,"
    "linear-gradient(to right,var(--line),transparent) 0/10px 100%,"
    "linear-gradient(to left,var(--line),transparent) 100%/10px 100%;"
    "background-repeat:no-repeat;background-attachment:local,local,scroll,scroll}\n"
    "th:first-child,td:first-child{position:sticky;left:0;background:var(--card)}\n"
    "@media(max-width:1100px){.bar{width:48px}th,td{padding:4px 8px}}\n"
    "@media(max-width:600px){main{padding:14px 8px 40px}section{padding:12px 10px}th,td{padding:4px 7px}"
    "th{white-space:normal;vertical-align:bottom;line-height:1.25}td:first-child{min-width:20ch;"
    "overflow-wrap:anywhere;white-space:normal}.bar{width:44px;margin-right:4px}"
    "dl{grid-template-columns:1fr}dt{margin-top:6px}.tile b{font-size:17px}}";

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
    html_tile(out, prof_seconds(job->on / job->there, small), "recorded, a rank");
    snprintf(text, sizeof(text), "%.1f %%", prof_share(job->mpi, job->on));
    html_tile(out, text, "of it in MPI");
    snprintf(text, sizeof(text), "%" PRIu64, messages);
    html_tile(out, text, "messages sent");
    html_tile(out, prof_bytes((double)job->p2p_classes.bytes, small), "in messages");
    snprintf(text, sizeof(text), "%" PRIu64, job->coll_classes.all);
    html_tile(out, text, "collective calls");
    if (job->reuse.accesses) {
        snprintf(text, sizeof(text), "%.1f %%",
                 prof_share((double)job->reuse.reused, (double)job->reuse.accesses));
        html_tile(out, text, "buffer reuse");
    }
    if (job->sent.messages) {
        snprintf(text, sizeof(text), "%.1f %%",
                 prof_share((double)job->within.messages, (double)job->sent.messages));
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
             prof_share((double)job->within.messages, (double)job->sent.messages),
             prof_share((double)job->within.bytes, (double)job->sent.bytes));
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
