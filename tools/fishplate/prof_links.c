/* prof_links.c: the links of a profiled job: parses, judges and prints them, the slowest first.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "prof.h"
#include "text_table.h"

enum { FEW_LINKS = 8, JSON_LINKS = 100 };

/* Parses "PEER WHICH MESSAGES BYTES NS BEST", the numbers of the MPI_T variable net_links. */
bool prof_link_read(const struct prof_job *job, int rank, const char *rest, struct link_seen *out)
{
    uint64_t peer, which, best;
    struct link_seen l = {.how = ""};
    if (sscanf(rest, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &peer, &which,
               &l.messages, &l.bytes, &l.ns, &best) != 6)
        return false;
    const bool out_of = which >> 8 & 1;
    if (peer >= (uint64_t)job->size) { /* links to ranks of another job are ignored */
        out->messages = 0;
        return true;
    }
    l.from = out_of ? rank : (int)peer;
    l.to = out_of ? (int)peer : rank;
    l.rail = (int)(which & 0xff);
    /* size class of the messages; lowest bit: within a node */
    l.kind = (unsigned)(which >> 16) << 1 | (which >> 9 & 1);
    l.best = (double)best * 1e-9 / 65536;
    *out = l;
    return true;
}

/* Merges and judges the links. Called when all ranks and their nodes are known. */
void prof_links_sum_up(struct prof_job *job)
{
    for (size_t i = 0; i < job->nlinks; i++) {
        struct link_seen *l = &job->links[i];
        const bool local = l->kind & 1;
        l->how = local ? "within the node" : job->adapter;
        l->ends[0] = local || !job->ranks[l->from].has_record ? l->from : job->ranks[l->from].node;
        l->ends[1] = local || !job->ranks[l->to].has_record ? l->to : job->ranks[l->to].node;
    }
    job->nlinks = links_merge(job->links, job->nlinks);
    job->slow_links = links_judge(job->links, job->nlinks);
}

/* Returns the host that all slow links have in common, or NULL. */
static const char *slow_host(const struct prof_job *job)
{
    const int end = links_find_slow_node(job->links, job->nlinks);
    return end >= 0 && end < job->size && !(job->links[0].kind & 1) ? job->ranks[end].host : NULL;
}

void prof_links_sentence(const struct prof_job *job, char *out, size_t size)
{
    const struct link_seen *l = job->links;
    char rate[PROF_TEXT], others[PROF_TEXT];
    *out = '\0';
    if (job->slow_links == 0)
        return;
    prof_format_bytes(l->rate, rate);
    prof_format_bytes(l->others, others);
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

/* Returns the mean cost per rank in seconds: the extra time compared with moving the bytes over the other
 * links. */
double prof_links_cost(const struct prof_job *job)
{
    double seconds = 0;
    for (size_t i = 0; i < job->slow_links; i++) {
        const struct link_seen *l = &job->links[i];
        seconds += (double)l->ns * 1e-9 - (double)l->bytes / l->others;
    }
    return seconds / job->nrecords;
}

static size_t links_count_shown(const struct prof_job *job)
{
    size_t n = job->slow_links < FEW_LINKS ? FEW_LINKS : job->slow_links;
    n = n > 2 * FEW_LINKS ? 2 * FEW_LINKS : n;
    return job->nlinks < n ? job->nlinks : n;
}

void prof_report_links(const struct prof_job *job, struct text_table *r)
{
    static const struct text_column columns[] = {
        {"from", 6},  {"to", 6},         {"rail", 4},          {"messages", 10}, {"bytes", 10},
        {"rate", 12}, {"of others", 12}, {"times slower", 13}, {"", -1},         {NULL, 0}};
    char text[PROF_TEXT];
    if (job->nlinks == 0)
        return;
    text_section(
        r->out, "Slowest links",
        "Messages of 32 KiB and more. Others are links of the same kind, with messages of similar size, "
        "between other nodes; times slower compares the fastest moments of both.");
    text_table_head(r, columns);
    for (size_t i = 0; i < links_count_shown(job); i++) {
        const struct link_seen *l = &job->links[i];
        text_cell(r, "%d", l->from);
        text_cell(r, "%d", l->to);
        text_cell(r, "%d", l->rail);
        text_cell(r, "%" PRIu64, l->messages);
        text_cell(r, "%s", prof_format_bytes((double)l->bytes, text));
        text_cell(r, "%s/s", prof_format_bytes(l->rate, text));
        text_cell(r, l->others > 0 ? "%s/s" : "-", prof_format_bytes(l->others, text));
        if (l->times >= 1) /* no factor for links that are faster than the others */
            text_cell(r, "%.1f", l->times);
        else
            text_cell(r, "-");
        text_cell(r, "%s%s", l->how, l->slow ? ": slow" : "");
    }
    if (job->slow_links == 0)
        fprintf(r->out, "  No link is much slower than others of its kind.\n");
    else if (slow_host(job))
        fprintf(r->out, "  All %zu slow links lead to or from host %s.\n", job->slow_links, slow_host(job));
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
