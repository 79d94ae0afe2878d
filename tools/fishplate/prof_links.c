/* prof_links.c: the links of a profiled job, the slowest first: from the lines of the records to a table in each form.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "html.h"
#include "cli/json.h"
#include "prof.h"
#include "prof_charts.h"

enum { FEW_LINKS = 8, JSON_LINKS = 100 };

/* "PEER WHICH MESSAGES BYTES NS BEST", the numbers of the variable net_links. */
bool prof_link_read(const struct prof_job *job, int rank, const char *rest, struct link_seen *out)
{
    uint64_t peer, which, best;
    struct link_seen l = {.how = ""};
    if (sscanf(rest, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &peer, &which,
               &l.messages, &l.bytes, &l.ns, &best) != 6)
        return false;
    const bool out_of = which >> 8 & 1;
    if (peer >= (uint64_t)job->size) { /* of another job: not compared */
        out->messages = 0;
        return true;
    }
    l.from = out_of ? rank : (int)peer;
    l.to = out_of ? (int)peer : rank;
    l.rail = (int)(which & 0xff);
    l.kind = (unsigned)(which >> 16) << 1 | (which >> 9 & 1); /* range of sizes; within a node */
    l.best = (double)best * 1e-9 / 65536;
    *out = l;
    return true;
}

/* Once all ranks and their nodes are known. */
void prof_links_sum_up(struct prof_job *job)
{
    for (size_t i = 0; i < job->nlinks; i++) {
        struct link_seen *l = &job->links[i];
        const bool local = l->kind & 1;
        l->how = local ? "within the node" : job->adapter;
        l->ends[0] = local || !job->ranks[l->from].there ? l->from : job->ranks[l->from].node;
        l->ends[1] = local || !job->ranks[l->to].there ? l->to : job->ranks[l->to].node;
    }
    job->nlinks = links_merge(job->links, job->nlinks);
    job->slow_links = links_judge(job->links, job->nlinks);
}

/* Host of the end that all slow links share, or NULL. */
static const char *slow_host(const struct prof_job *job)
{
    const int end = links_culprit(job->links, job->nlinks);
    return end >= 0 && end < job->size && !(job->links[0].kind & 1) ? job->ranks[end].host : NULL;
}

void prof_links_sentence(const struct prof_job *job, char *out, size_t size)
{
    const struct link_seen *l = job->links;
    char rate[PROF_TEXT], others[PROF_TEXT];
    *out = '\0';
    if (job->slow_links == 0)
        return;
    prof_bytes(l->rate, rate);
    prof_bytes(l->others, others);
    if (slow_host(job))
        snprintf(out, size,
                 "Host %.64s has slow links: %zu of them, all to or from it, the slowest with %s/s where "
                 "others have "
                 "%s/s. `fishplate check` measures its ports.",
                 slow_host(job), job->slow_links, rate, others);
    else
        snprintf(out, size,
                 "The link from rank %d (%.64s) to rank %d (%.64s) is slow: %s/s where others have %s/s. "
                 "`fishplate "
                 "check` measures it.",
                 l->from, job->ranks[l->from].host, l->to, job->ranks[l->to].host, rate, others);
}

/* Cost of the slow links per rank: the extra time compared with moving their bytes over one of the other
 * links. */
double prof_links_cost(const struct prof_job *job)
{
    double seconds = 0;
    for (size_t i = 0; i < job->slow_links; i++) {
        const struct link_seen *l = &job->links[i];
        seconds += (double)l->ns * 1e-9 - (double)l->bytes / l->others;
    }
    return seconds / job->there;
}

static size_t links_count_shown(const struct prof_job *job)
{
    size_t n = job->slow_links < FEW_LINKS ? FEW_LINKS : job->slow_links;
    n = n > 2 * FEW_LINKS ? 2 * FEW_LINKS : n;
    return job->nlinks < n ? job->nlinks : n;
}

static void times_text(const struct link_seen *l, char out[PROF_TEXT])
{
    if (l->times >= 1) /* the other links are faster than the reference */
        snprintf(out, PROF_TEXT, "%.1f", l->times);
    else
        snprintf(out, PROF_TEXT, "-");
}

void prof_text_links(const struct prof_job *job, FILE *out)
{
    char a[PROF_TEXT], b[PROF_TEXT], c[PROF_TEXT], d[PROF_TEXT];
    if (job->nlinks == 0)
        return;
    fprintf(out, "\nSlowest links: messages of 32 KiB and more; compared with links of their kind\n");
    fprintf(out, "  %6s    %-6s %4s %10s %10s %12s %12s %13s\n", "from", "to", "rail", "messages", "bytes",
            "rate", "of others", "times slower");
    for (size_t i = 0; i < links_count_shown(job); i++) {
        const struct link_seen *l = &job->links[i];
        times_text(l, d);
        fprintf(out, "  %6d to %-6d %4d %10" PRIu64 " %10s %10s/s %10s/s %13s  %s%s\n", l->from, l->to,
                l->rail, l->messages, prof_bytes((double)l->bytes, a), prof_bytes(l->rate, b),
                prof_bytes(l->others, c), d, l->how, l->slow ? ": slow" : "");
    }
    if (job->slow_links == 0)
        fprintf(out, "  no link is much slower than others of its kind\n");
    if (slow_host(job))
        fprintf(out, "  all %zu slow links lead to or from host %s\n", job->slow_links, slow_host(job));
}

void prof_html_links(const struct prof_job *job, FILE *out)
{
    static const char *const names[] = {"from", "to",     "rail",         "messages", "bytes",
                                        "rate", "others", "times slower", "",         NULL};
    char text[PROF_TEXT];
    if (job->nlinks == 0)
        return;
    html_section(out, "Slowest links",
                 "Messages of 32 KiB and more. The rate is what moved while messages were under way; others "
                 "are links of "
                 "the same kind, with messages of like size, that do not touch the same node; times slower "
                 "compares the "
                 "fastest moments of both.");
    html_head_row(out, names);
    for (size_t i = 0; i < links_count_shown(job); i++) {
        const struct link_seen *l = &job->links[i];
        fputs("<tr>", out);
        html_put(out, "td", NULL, "%d (%s)", l->from, job->ranks[l->from].host);
        html_put(out, "td", NULL, "%d (%s)", l->to, job->ranks[l->to].host);
        html_put(out, "td", NULL, "%d", l->rail);
        html_put(out, "td", NULL, "%" PRIu64, l->messages);
        html_put(out, "td", NULL, "%s", prof_bytes((double)l->bytes, text));
        html_put(out, "td", NULL, "%s/s", prof_bytes(l->rate, text));
        html_put(out, "td", NULL, l->others > 0 ? "%s/s" : "-", prof_bytes(l->others, text));
        times_text(l, text);
        html_put(out, "td", NULL, "%s", text);
        html_put(out, "td", l->slow ? "slow" : NULL, "%s%s", l->how, l->slow ? ": slow" : "");
        fputs("</tr>\n", out);
    }
    html_table_end(out);
    if (job->slow_links == 0)
        html_put(out, "p", NULL, "No link is much slower than others of its kind.");
    else if (slow_host(job))
        html_put(out, "p", NULL, "All %zu slow links lead to or from host %s.", job->slow_links,
                 slow_host(job));
    html_section_end(out);
}

void prof_json_links(struct json *j, const struct prof_job *job)
{
    if (slow_host(job))
        json_string(j, "slow_host", slow_host(job));
    json_int(j, "slow_links", (long long)job->slow_links);
    json_array(j, "links");
    for (size_t i = 0; i < job->nlinks && i < JSON_LINKS; i++)
        links_json(j, &job->links[i]);
    json_end(j);
}
