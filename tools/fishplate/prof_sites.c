/* prof_sites.c: the call sites of MPI functions by cost, and the processors that ranks share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "prof.h"
#include "text_table.h"

enum { SITES_MAX = 1 << 14, MACHINES_MAX = 1 << 16 };

/* True for the Fortran bindings: call sites inside them say nothing about the program. */
static bool is_binding(const char *path)
{
    return strstr(path, "libmpifort") != NULL;
}

bool prof_site_read(struct prof_job *job, int function, const char *rest)
{
    struct prof_site s = {.function = function};
    int used = 0;
    if (sscanf(rest, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %n", &s.calls, &s.ns, &s.offset, &used) != 3 ||
        rest[used] != '/')
        return false;
    snprintf(s.path, sizeof(s.path), "%s", rest + used);
    if (is_binding(s.path))
        return true;
    for (size_t i = 0; i < job->nsites; i++) {
        struct prof_site *t = &job->sites[i];
        if (t->function == function && t->offset == s.offset && strcmp(t->path, s.path) == 0) {
            t->calls += s.calls;
            t->ns += s.ns;
            return true;
        }
    }
    if (job->nsites == SITES_MAX)
        return true;
    struct prof_site *more = realloc(job->sites, (job->nsites + 1) * sizeof(*more));
    if (!more)
        return false;
    job->sites = more;
    job->sites[job->nsites++] = s;
    return true;
}

static struct prof_machine *find_machine(struct prof_job *job, const char *id, const char *host)
{
    for (size_t i = 0; i < job->nmachines; i++)
        if (strcmp(job->machines[i].id, id) == 0)
            return &job->machines[i];
    if (job->nmachines == MACHINES_MAX)
        return NULL;
    struct prof_machine *more = realloc(job->machines, (job->nmachines + 1) * sizeof(*more));
    if (!more)
        return NULL;
    job->machines = more;
    struct prof_machine *m = &job->machines[job->nmachines++];
    memset(m, 0, sizeof(*m));
    snprintf(m->id, sizeof(m->id), "%s", id);
    snprintf(m->host, sizeof(m->host), "%s", host);
    return m;
}

/* Parses "BOOT-ID 0-3 8-11": the machine and the processors of a rank. */
bool prof_processors_read(struct prof_job *job, const char *host, const char *rest)
{
    const unsigned word = 8 * sizeof(unsigned long);
    char id[64];
    int used = 0;
    unsigned first, last;
    if (sscanf(rest, "%63s%n", id, &used) != 1)
        return false;
    struct prof_machine *m = find_machine(job, id, host);
    if (!m)
        return false;
    m->ranks++;
    for (rest += used; sscanf(rest, " %u-%u%n", &first, &last, &used) == 2; rest += used) {
        if (first > last || last >= 8192)
            return false;
        for (unsigned cpu = first; cpu <= last; cpu++) {
            m->processors += !(m->mask[cpu / word] >> cpu % word & 1);
            m->mask[cpu / word] |= 1ul << cpu % word;
        }
    }
    return *rest == '\0';
}

static int most_time_first(const void *a, const void *b)
{
    const struct prof_site *s = a, *t = b;
    return s->ns != t->ns ? (s->ns < t->ns ? 1 : -1) : 0;
}

void prof_sites_sum_up(struct prof_job *job)
{
    if (job->nsites)
        qsort(job->sites, job->nsites, sizeof(*job->sites), most_time_first);
}

const char *prof_find_function_site(const struct prof_job *job, const struct prof_function *f, char out[192])
{
    out[0] = '\0';
    for (size_t i = 0; i < job->nsites && !out[0]; i++)
        if (job->sites[i].function == f->id && job->sites[i].text[0])
            snprintf(out, 192, " (most at %s)", job->sites[i].text);
    return out;
}

static const char *site_function(const struct prof_job *job, const struct prof_site *s)
{
    for (size_t i = 0; i < job->nfunctions; i++)
        if (job->functions[i].id == s->function)
            return job->functions[i].name;
    return "?";
}

void prof_report_sites(const struct prof_job *job, struct text_table *r)
{
    static const struct text_column columns[] = {
        {"line", -43}, {"function", -24}, {"calls", 7}, {"time of a rank", 14}, {NULL, 0}};
    char time[PROF_TEXT];
    if (job->nsites == 0 || !job->sites[0].text[0])
        return;
    text_section(r->out, "Lines that cost most",
                 "Lines of the program that call MPI; the time is that of a rank.");
    text_table_head(r, columns);
    for (size_t i = 0; i < job->nsites && job->sites[i].text[0]; i++) {
        const struct prof_site *s = &job->sites[i];
        text_cell(r, "%s", s->text);
        text_cell(r, "%s", site_function(job, s));
        text_cell(r, "%" PRIu64, s->calls);
        text_cell(r, "%s", prof_format_seconds((double)s->ns * 1e-9 / job->nrecords, time));
    }
}

void prof_json_sites(struct json *j, const struct prof_job *job)
{
    json_array(j, "lines");
    for (size_t i = 0; i < job->nsites && job->sites[i].text[0]; i++) {
        const struct prof_site *s = &job->sites[i];
        json_record(j, NULL, "line=%s function=%s calls=%lld seconds=%g", s->text, site_function(job, s),
                    (long long)s->calls, (double)s->ns * 1e-9 / job->nrecords);
    }
    json_end(j);
    json_array(j, "machines");
    for (size_t i = 0; i < job->nmachines; i++) {
        json_record(j, NULL, "host=%s ranks=%d processors=%d", job->machines[i].host, job->machines[i].ranks,
                    job->machines[i].processors);
    }
    json_end(j);
}
