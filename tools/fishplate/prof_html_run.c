/* prof_html_run.c: the upper part of the page: findings, missing data
 * and facts about the run.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "html.h"
#include "prof_charts.h"

void prof_html_verdict(const struct prof_job *job, FILE *out)
{
    struct prof_verdict v;
    char missing[1024], cost[PROF_TEXT];
    prof_judge(job, &v);
    prof_describe_missing_data(job, missing, sizeof(missing));
    fprintf(out, "<section class=\"verdict %s\">\n",
            *missing                ? "broken"
            : v.list[0].seconds > 0 ? "costly"
                                    : "fine");
    html_put(out, "h2", NULL, "%s", *missing ? "This run is incomplete" : "Verdict");
    if (*missing)
        html_put(out, "p", "missing", "%s", missing);
    fputs("<ol>\n", out);
    for (int i = 0; i < v.n; i++) {
        fputs("<li>", out);
        html_text(out, v.list[i].text);
        if (v.list[i].seconds > 0)
            html_put(out, "span", "cost", " It costs a rank %s, %.0f %% of its time.",
                     prof_format_seconds(v.list[i].seconds, cost),
                     prof_compute_percent(v.list[i].seconds, job->on / job->nrecords));
        fputs("</li>\n", out);
    }
    fputs("</ol>\n</section>\n", out);
}

static void html_fact(FILE *out, const char *name, const char *value)
{
    if (!*value)
        return;
    html_put(out, "dt", NULL, "%s", name);
    html_put(out, "dd", NULL, "%s", value);
    fputc('\n', out);
}

/* Lists the hosts with their number of ranks: "north (4 ranks), south (4 ranks)". */
static void hosts_text(const struct prof_job *job, char *text, size_t size)
{
    size_t used = 0;
    int shown = 0;
    text[0] = '\0';
    for (int r = 0; r < job->size && used < size; r++) {
        int here = 0;
        if (!job->ranks[r].has_record || job->ranks[r].node != r)
            continue;
        for (int k = r; k < job->size; k++)
            here += job->ranks[k].has_record && job->ranks[k].node == r;
        if (shown++ == 16) {
            snprintf(text + used, size - used, " and %d more", job->nodes - 16);
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%.64s (%d rank%s)", shown > 1 ? ", " : "",
                                 job->ranks[r].host, here, here == 1 ? "" : "s");
    }
}

void prof_html_run(const struct prof_job *job, FILE *out)
{
    char text[2048], date[PROF_TEXT_LONG];
    html_section(out, "This run", "What the figures were measured with.");
    fputs("<dl>\n", out);
    html_fact(out, "command", job->command ? job->command : job->program);
    html_fact(out, "date", prof_format_date(job, date));
    html_fact(out, "library", job->library);
    hosts_text(job, text, sizeof(text));
    html_fact(out, "hosts", text);
    html_fact(out, "between nodes", job->adapter);
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < job->nsettings && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "", job->settings[i]);
    html_fact(out, "settings", job->nsettings ? text : job->library[0] ? "all as they are by default" : "");
    fputs("</dl>\n", out);
    html_section_end(out);
}
