/* prof_text.c: writes the report as text for a terminal.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "prof.h"
#include "text_table.h"

enum { MATRIX_MAX = 16, FEW_PAIRS = 20 };

static void write_head(const struct prof_job *job, FILE *out)
{
    char text[PROF_TEXT];
    int least = -1, most = -1;
    fprintf(out, "fishplate prof: %s, %d rank%s on %d node%s\n", job->command ? job->command : job->program,
            job->size, job->size == 1 ? "" : "s", job->nodes, job->nodes == 1 ? "" : "s");
    for (int r = 0; r < job->size; r++) {
        if (!job->ranks[r].has_record)
            continue;
        if (least < 0 || job->ranks[r].mpi < job->ranks[least].mpi)
            least = r;
        if (most < 0 || job->ranks[r].mpi > job->ranks[most].mpi)
            most = r;
    }
    fprintf(out, "  recorded time of a rank: %s", prof_format_seconds(job->on / job->nrecords, text));
    fprintf(out, "; in MPI %.1f %%", prof_compute_percent(job->mpi, job->on));
    if (job->nrecords > 1)
        fprintf(out, " (rank %d: %.1f %%, rank %d: %.1f %%)", least,
                prof_compute_percent(job->ranks[least].mpi, job->ranks[least].on), most,
                prof_compute_percent(job->ranks[most].mpi, job->ranks[most].on));
    fprintf(out, "\n");
    if (job->threaded)
        fprintf(out, "  times are sums over the threads of a rank\n");
    fprintf(out, "  of the time in MPI:");
    const char *comma = "";
    for (int k = 0; k < PROF_KINDS; k++)
        if (job->kinds[k] > 0) {
            fprintf(out, "%s %s %.1f %%", comma, prof_kind_names[k],
                    prof_compute_percent(job->kinds[k], job->mpi));
            comma = ",";
        }
    fprintf(out, "\n");
}

/* Prints the findings; they precede all tables. */
static void write_verdict(const struct prof_job *job, FILE *out)
{
    struct prof_verdict v;
    char missing[1024], cost[PROF_TEXT];
    prof_judge(job, &v);
    prof_describe_missing_data(job, missing, sizeof(missing));
    if (*missing)
        fprintf(out, "\nIncomplete: %s\n", missing);
    fprintf(out, "\nVerdict\n");
    for (int i = 0; i < v.n; i++) {
        fprintf(out, "  %d. %s", i + 1, v.list[i].text);
        if (v.list[i].seconds > 0)
            fprintf(out, " It costs a rank %s, %.0f %% of its time.",
                    prof_format_seconds(v.list[i].seconds, cost),
                    prof_compute_percent(v.list[i].seconds, job->on / job->nrecords));
        fprintf(out, "\n");
    }
}

static void write_run(const struct prof_job *job, FILE *out)
{
    char date[PROF_TEXT_LONG];
    if (!job->library[0])
        return;
    fprintf(out, "  %s; %s\n", prof_format_date(job, date), job->library);
    if (job->adapter[0])
        fprintf(out, "  between nodes: %s\n", job->adapter);
    fprintf(out, "  settings:");
    for (size_t i = 0; i < job->nsettings; i++)
        fprintf(out, " %s", job->settings[i]);
    fprintf(out, job->nsettings ? "\n" : " all as they are by default\n");
}

static const struct prof_pair *text_find_pair(const struct prof_pair *pairs, size_t n, int from, int to)
{
    for (size_t i = 0; i < n; i++)
        if (pairs[i].from == from && pairs[i].to == to)
            return &pairs[i];
    return NULL;
}

static void write_matrix(const struct prof_job *job, const struct prof_pair *pairs, size_t n, bool bytes,
                         FILE *out)
{
    char text[PROF_TEXT];
    fprintf(out, "  %-9s", bytes ? "bytes" : "messages");
    for (int to = 0; to < job->size; to++)
        fprintf(out, " %9d", to);
    fprintf(out, "   (to)\n");
    for (int from = 0; from < job->size; from++) {
        fprintf(out, "  from %-4d", from);
        for (int to = 0; to < job->size; to++) {
            const struct prof_pair *p = text_find_pair(pairs, n, from, to);
            if (p && !bytes)
                snprintf(text, sizeof(text), "%" PRIu64, p->messages);
            fprintf(out, " %9s", !p ? "." : bytes ? prof_format_bytes((double)p->bytes, text) : text);
        }
        fprintf(out, "\n");
    }
}

static int prof_text_compare_by_bytes(const void *a, const void *b)
{
    const struct prof_pair *p = a, *q = b;
    if (p->bytes != q->bytes)
        return p->bytes < q->bytes ? 1 : -1;
    return p->from != q->from ? p->from - q->from : p->to - q->to;
}

/* Prints the pairs of ranks that moved most, if there are too many ranks for a matrix. */
static void write_pairs(const struct prof_job *job, bool all, FILE *out)
{
    char text[PROF_TEXT];
    struct prof_pair *sorted = malloc(job->npairs * sizeof(*sorted) + 1);
    size_t n = all || job->npairs < FEW_PAIRS ? job->npairs : FEW_PAIRS;
    if (!sorted)
        return;
    memcpy(sorted, job->pairs, job->npairs * sizeof(*sorted));
    qsort(sorted, job->npairs, sizeof(*sorted), prof_text_compare_by_bytes);
    fprintf(out, "  %zu pairs of ranks, %.1f peers a rank; those that moved most:\n", job->npairs,
            (double)job->npairs / job->nrecords);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "  %6d to %-6d %12" PRIu64 " messages %12s\n", sorted[i].from, sorted[i].to,
                sorted[i].messages, prof_format_bytes((double)sorted[i].bytes, text));
    free(sorted);
}

static void write_peers(const struct prof_job *job, bool all, FILE *out)
{
    fprintf(out, "\nPeers: messages sent, point to point\n");
    if (job->outside.messages)
        fprintf(out, "  %" PRIu64 " messages went to processes outside this job's world\n",
                job->outside.messages);
    if (!job->npairs) {
        fprintf(out, "  none between ranks\n");
        return;
    }
    fprintf(out, "  within a node: %.1f %% of the messages, %.1f %% of the bytes\n",
            prof_compute_percent((double)job->within.messages, (double)job->sent.messages),
            prof_compute_percent((double)job->within.bytes, (double)job->sent.bytes));
    if (job->size > MATRIX_MAX) {
        write_pairs(job, all, out);
        return;
    }
    write_matrix(job, job->pairs, job->npairs, false, out);
    write_matrix(job, job->pairs, job->npairs, true, out);
}

/* Prints the messages that the library itself sent, if the record contains them. */
static void write_carried(const struct prof_job *job, FILE *out)
{
    if (!job->ncarried || job->size > MATRIX_MAX)
        return;
    fprintf(
        out,
        "\nPeers, with collectives: what the library sent, except in memory that ranks of a node share\n");
    write_matrix(job, job->carried, job->ncarried, false, out);
    write_matrix(job, job->carried, job->ncarried, true, out);
}

void prof_write_text(const struct prof_job *job, bool all, FILE *out)
{
    struct text_table r = {.out = out};
    write_head(job, out);
    write_run(job, out);
    write_verdict(job, out);
    prof_write_tables(job, all, &r);
    write_peers(job, all, out);
    write_carried(job, out);
    prof_report_links(job, &r);
}
