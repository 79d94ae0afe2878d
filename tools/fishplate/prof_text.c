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

/* Writes the tables of the text report. */

enum { FEW_FUNCTIONS = 20 };

static double stat_seconds(const struct prof_stat *s)
{
    return (double)s->ns * 1e-9;
}

static void cell_seconds(struct text_table *r, double seconds)
{
    char text[PROF_TEXT];
    text_cell(r, "%s", prof_format_seconds(seconds, text));
}

static void cell_bytes(struct text_table *r, double bytes, uint64_t count)
{
    char text[PROF_TEXT];
    text_cell(r, "%s", prof_format_bytes(count ? bytes / (double)count : 0, text));
}

static void cell_name(struct text_table *r, const struct prof_function *f)
{
    text_cell(r, "%s", f->name);
    text_cell(r, "%" PRIu64, f->all.calls);
}

static void cell_share(struct text_table *r, const struct prof_function *f, double share)
{
    if (f->startup)
        text_cell(r, "-");
    else
        text_cell(r, "%.1f %%", share);
}

static bool is_split(const struct prof_function *f)
{
    return f->split;
}

static bool is_nonblocking(const struct prof_function *f)
{
    return f->nonblocking;
}

static bool is_waiting(const struct prof_function *f)
{
    return f->kind == PROF_WAIT;
}

static bool accept_any_function(const struct prof_function *f)
{
    (void)f;
    return true;
}

static void row_collective(struct text_table *r, const struct prof_job *job, const struct prof_function *f)
{
    (void)job;
    cell_name(r, f);
    cell_seconds(r, f->waiting);
    cell_seconds(r, f->moving);
    if (f->waiting > 0)
        text_cell(r, "%d (%.0f %%)", f->late, 100 * f->late_share);
    else
        text_cell(r, "-");
}

static void row_function(struct text_table *r, const struct prof_job *job, const struct prof_function *f)
{
    cell_name(r, f);
    cell_share(r, f, prof_compute_percent(stat_seconds(&f->all), job->mpi));
    cell_seconds(r, f->min);
    cell_seconds(r, f->mean);
    cell_seconds(r, f->max);
    text_cell(r, "%.0f %%", 100 * prof_imbalance(f));
    cell_seconds(r, (double)f->all.ns_max * 1e-9);
}

static void row_nonblocking(struct text_table *r, const struct prof_job *job, const struct prof_function *f)
{
    (void)job;
    cell_name(r, f);
    cell_bytes(r, (double)f->all.bytes, f->all.sized);
}

static void row_waiting(struct text_table *r, const struct prof_job *job, const struct prof_function *f)
{
    cell_name(r, f);
    text_cell(r, "%.1f %%", prof_compute_percent(stat_seconds(&f->all), job->mpi));
    cell_seconds(r, f->mean);
    cell_seconds(r, stat_seconds(&f->all) / (double)f->all.calls);
    cell_seconds(r, (double)f->all.ns_max * 1e-9);
}

/* A section with a row for each function that `belongs` accepts. */
struct function_table {
    const char *title, *about;
    bool (*belongs)(const struct prof_function *f);
    void (*row)(struct text_table *r, const struct prof_job *job, const struct prof_function *f);
    struct text_column columns[12];
};

static const struct function_table collective_table = {
    "Collectives: waiting and moving",
    "Calls of all ranks; mean time of a rank. Waiting ends when the last rank calls; moving is the rest of "
    "the call.",
    is_split,
    row_collective,
    {{"function", -28}, {"calls", 12}, {"waiting", 12}, {"moving", 12}, {"waited for rank", 18}, {NULL, 0}}};
static const struct function_table all_table = {
    "Functions",
    "Calls of all ranks; time of a rank. Imbalance is max / mean - 1.",
    accept_any_function,
    row_function,
    {{"function", -28},
     {"calls", 12},
     {"of MPI", 7},
     {"min", 10},
     {"mean", 10},
     {"max", 10},
     {"imbalance", 10},
     {"longest call", 12},
     {NULL, 0}}};
static const struct function_table nonblocking_table = {
    "Nonblocking calls",
    "Communication that can overlap with computation; large messages gain most.",
    is_nonblocking,
    row_nonblocking,
    {{"function", -28}, {"calls", 12}, {"mean size", 12}, {NULL, 0}}};
static const struct function_table waiting_table = {
    "Waiting",
    "Calls that complete, test or probe. Blocking calls wait too: their time is in the table of functions.",
    is_waiting,
    row_waiting,
    {{"function", -28},
     {"calls", 12},
     {"of MPI", 12},
     {"a rank", 12},
     {"a call", 12},
     {"longest", 12},
     {NULL, 0}}};

static void write_functions(struct text_table *r, const struct prof_job *job, const struct function_table *t,
                            size_t limit)
{
    size_t n = 0, shown = 0;
    for (size_t i = 0; i < job->nfunctions; i++)
        n += t->belongs(&job->functions[i]);
    if (n == 0)
        return;
    text_section(r->out, t->title, t->about);
    text_table_head(r, t->columns);
    for (size_t i = 0; i < job->nfunctions && shown < limit; i++)
        if (t->belongs(&job->functions[i])) {
            t->row(r, job, &job->functions[i]);
            shown++;
        }
    if (shown < n)
        fprintf(r->out, "  and %zu more that took less time; --all shows them\n", n - shown);
}

static void write_class_row(struct text_table *r, const char *name, const struct prof_classes *c)
{
    text_cell(r, "%s", name);
    for (int i = 0; i < 4; i++)
        text_cell(r, "%" PRIu64, c->count[i]);
    text_cell(r, "%" PRIu64, c->all);
    cell_bytes(r, (double)c->bytes, 1);
    cell_bytes(r, (double)c->bytes, c->all);
}

static void write_sizes(struct text_table *r, const struct prof_job *job)
{
    const struct text_column columns[] = {{"", -16},
                                          {prof_class_names[0], 12},
                                          {prof_class_names[1], 12},
                                          {prof_class_names[2], 16},
                                          {prof_class_names[3], 12},
                                          {"all", 12},
                                          {"bytes", 12},
                                          {"mean", 12},
                                          {NULL, 0}};
    const struct prof_classes *p = &job->p2p_classes, *c = &job->coll_classes;
    text_section(
        r->out, "Message sizes",
        "A message counts at its sender, a collective call at each rank with the bytes of its send buffer, "
        "or of its receive buffer if it sends none.");
    text_table_head(r, columns);
    write_class_row(r, "point to point", p);
    write_class_row(r, "collective", c);
    if (c->all)
        fprintf(r->out,
                "  Collective calls are %.1f %% of both, with %.1f %% of the bytes and %.1f %% of the time "
                "in MPI.\n",
                prof_compute_percent((double)c->all, (double)(p->all + c->all)),
                prof_compute_percent((double)c->bytes, (double)(p->bytes + c->bytes)),
                prof_compute_percent(job->kinds[PROF_COLL], job->mpi));
}

static void write_memory(struct text_table *r, const struct prof_job *job)
{
    char host[PROF_TEXT], managed[PROF_TEXT], gpu[PROF_TEXT];
    if (!job->memory[1] && !job->memory[2])
        return;
    text_section(r->out, "Memory", "Bytes of the buffers that calls sent and received.");
    fprintf(r->out, "  %s of host memory, %s of managed memory, %s of GPU memory.\n",
            prof_format_bytes((double)job->memory[0], host),
            prof_format_bytes((double)job->memory[1], managed),
            prof_format_bytes((double)job->memory[2], gpu));
}

static void write_reuse(struct text_table *r, const struct prof_job *job)
{
    const struct prof_reuse *u = &job->reuse;
    if (!u->accesses)
        return;
    text_section(
        r->out, "Buffer reuse",
        "A buffer is reused if its address was used before. Networks register a buffer at its first use.");
    fprintf(r->out, "  %.2f %% of %" PRIu64 " accesses; %.2f %% weighted by size.\n",
            prof_compute_percent((double)u->reused, (double)u->accesses), u->accesses,
            prof_compute_percent((double)u->reused_bytes, (double)u->bytes));
    if (u->dropped)
        fprintf(r->out,
                "  %" PRIu64 " addresses found no room to be remembered: the true rate may be higher.\n",
                u->dropped);
}

static void write_tables(const struct prof_job *job, bool all, struct text_table *r)
{
    write_functions(r, job, &collective_table, SIZE_MAX);
    write_functions(r, job, &all_table, all ? SIZE_MAX : FEW_FUNCTIONS);
    prof_report_sites(job, r);
    write_sizes(r, job);
    write_functions(r, job, &nonblocking_table, SIZE_MAX);
    write_functions(r, job, &waiting_table, SIZE_MAX);
    write_memory(r, job);
    write_reuse(r, job);
}

void prof_write_text(const struct prof_job *job, bool all, FILE *out)
{
    struct text_table r = {.out = out};
    write_head(job, out);
    write_run(job, out);
    write_verdict(job, out);
    write_tables(job, all, &r);
    write_peers(job, all, out);
    write_carried(job, out);
    prof_report_links(job, &r);
}
