/* print.c: prints the survey and its findings as text, as JSON, and as a web page that renders the JSON.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <string.h>

#include "../web_page.h"
#include "cli/json.h"
#include "check.h"

static const char page_script[] =
#include "check_page.js.inc"
    ;

enum {
    MATRIX_MAX = 12, /* largest number of hosts for which the whole matrix is printed */
    NAMES_MAX = 8    /* largest number of hosts named in one finding */
};

void check_print_memory_limits(FILE *out, const struct facts *h)
{
    if (h->memlock == UINT64_MAX)
        fprintf(out, "locked memory unlimited");
    else
        fprintf(out, "locked memory at most %.1f MB", (double)h->memlock / 1e6);
    fprintf(out, ", /dev/shm %.0f of %.0f MB free, CMA %s", (double)h->shm_free / 1e6,
            (double)h->shm_total / 1e6, h->cma ? "works" : "does not work");
}

static void check_print_host(FILE *out, const struct facts *h)
{
    char name[96];
    fprintf(out, "%s: ", h->host);
    if (strcmp(h->host, h->own_name) != 0)
        fprintf(out, "(calls itself %s) ", h->own_name);
    fprintf(out, "Fishplate %s, Linux %s, %d processor%s, %.1f GB memory\n", h->version, h->kernel, h->cpus,
            h->cpus == 1 ? "" : "s", (double)h->memory / 1e9);
    fputs("  ", out);
    check_print_memory_limits(out, h);
    if (h->clock_error > 0)
        fprintf(out, ", clock %+.3f ms (within %.3f)", h->clock * 1e3, h->clock_error * 1e3);
    fputc('\n', out);
    for (int i = 0; i < h->nports && i < FACT_PORTS; i++) {
        const struct net_port *p = &h->ports[i];
        char gid[INET6_ADDRSTRLEN] = "none";
        if (p->gid_index >= 0)
            inet_ntop(AF_INET6, p->gid, gid, sizeof(gid));
        net_port_describe(p, name, sizeof(name));
        fprintf(out, "  %s: %s, MTU %u, GID %s%s\n", name, net_port_state(p), p->mtu, gid,
                p->chosen ? ", used between hosts" : "");
    }
    if (h->nports == 0)
        fprintf(out, "  no adapter: %s\n", h->no_ports);
}

static void check_print_matrix(FILE *out, const struct survey *s, const char *title, const double *figures,
                               double unit, const char *format)
{
    fprintf(out, "\n%s\n%-16s", title, "");
    for (int b = 0; b < s->n; b++)
        fprintf(out, " %9.9s", s->hosts[b].host);
    fputc('\n', out);
    for (int a = 0; a < s->n; a++) {
        fprintf(out, "%-16.16s", s->hosts[a].host);
        for (int b = 0; b < s->n; b++) {
            if (a == b)
                fprintf(out, " %9s", "-");
            else
                fprintf(out, format, figures[a * s->n + b] / unit);
        }
        fputc('\n', out);
    }
}

/* Prints the medians of each host, if there are too many hosts for a matrix. */
static void check_print_medians(FILE *out, const struct survey *s)
{
    fprintf(out, "\n%-24s %12s %12s   (medians over its pairs)\n", "host", "MB/s", "us");
    for (int i = 0; i < s->n; i++)
        fprintf(out, "%-24.24s %12.0f %12.2f\n", s->hosts[i].host,
                survey_get_host_median(s, s->bandwidth, i) / 1e6,
                survey_get_host_median(s, s->latency, i) * 1e6);
}

static bool findings_are_equal(const struct finding *a, const struct finding *b)
{
    return a->severity == b->severity && strcmp(a->problem, b->problem) == 0 && strcmp(a->todo, b->todo) == 0;
}

/* Prints a finding once for all hosts that share it. */
static void check_print_finding(FILE *out, const struct findings *f, int first)
{
    const struct finding *it = &f->v[first];
    int hosts = 0;
    for (int i = 0; i < first; i++)
        if (findings_are_equal(&f->v[i], it))
            return;
    fprintf(out, "%s: ", it->severity == CHECK_WARNING ? "Warning" : "Note");
    for (int i = first; i < f->n; i++)
        if (findings_are_equal(&f->v[i], it) && hosts++ < NAMES_MAX && it->host[0])
            fprintf(out, "%s%s", hosts > 1 ? ", " : "", f->v[i].host);
    if (hosts > NAMES_MAX)
        fprintf(out, " and %d more hosts", hosts - NAMES_MAX);
    fprintf(out, "%s%s.\n    %s\n", it->host[0] ? ": " : "", it->problem, it->todo);
}

void check_print_figures(FILE *out, const struct survey *s)
{
    if (s->n > 1 && s->n <= MATRIX_MAX) {
        check_print_matrix(out, s, "Bandwidth, MB/s", s->bandwidth, 1e6, " %9.0f");
        check_print_matrix(out, s, "Latency, us", s->latency, 1e-6, " %9.2f");
    } else if (s->n > 1) {
        check_print_medians(out, s);
    }
}

void check_print_findings(FILE *out, const struct survey *s, const struct findings *f)
{
    int warnings = 0;
    for (int i = 0; i < f->n; i++) {
        warnings += f->v[i].severity == CHECK_WARNING;
        check_print_finding(out, f, i);
    }
    if (warnings == 0)
        fprintf(out, "%s about %s.\n", f->n ? "There is no warning" : "There is nothing to report",
                s->n == 1 ? "this host" : "these hosts");
    if (s->n == 2)
        fprintf(
            out,
            "Two hosts cannot show which of them is slow: add a third one, or compare the figures with those "
            "of the adapter's vendor.\n");
}

void check_text(FILE *out, const struct survey *s, const struct findings *f)
{
    for (int i = 0; i < s->n; i++)
        check_print_host(out, &s->hosts[i]);
    if (s->n > 1)
        fprintf(out, "\nBetween hosts: %s\n", s->path);
    check_print_figures(out, s);
    fputc('\n', out);
    check_print_findings(out, s, f);
}

static void json_host(struct json *j, const struct facts *h)
{
    json_object(j, NULL);
    json_members(j, "host=%s own_name=%s version=%s kernel=%s processors=%d memory=%lld", h->host,
                 h->own_name, h->version, h->kernel, h->cpus, (long long)h->memory);
    json_members(j, "memlock=%lld shm_free=%lld shm_total=%lld",
                 h->memlock == UINT64_MAX ? -1ll : (long long)h->memlock, (long long)h->shm_free,
                 (long long)h->shm_total);
    json_bool(j, "cma", h->cma != 0);
    json_members(j, "ptrace_scope=%d clock_ahead_seconds=%g clock_error_seconds=%g", h->ptrace, h->clock,
                 h->clock_error);
    json_array(j, "ports");
    for (int i = 0; i < h->nports && i < FACT_PORTS; i++) {
        const struct net_port *p = &h->ports[i];
        char gid[INET6_ADDRSTRLEN] = "";
        if (p->gid_index >= 0)
            inet_ntop(AF_INET6, p->gid, gid, sizeof(gid));
        json_object(j, NULL);
        json_members(j, "device=%s port=%d state=%s link=%s made=%s rate_gbits=%g", p->device, p->port,
                     net_port_state(p), net_port_link(p), net_port_implementation(p), p->rate / 1000.0);
        json_members(j, "mtu=%d gid=%s", p->mtu, gid);
        json_bool(j, "used", p->chosen);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

static void json_matrix(struct json *j, const char *name, const struct survey *s, const double *figures)
{
    json_array(j, name);
    for (int a = 0; a < s->n; a++) {
        json_array(j, NULL);
        for (int b = 0; b < s->n; b++)
            json_real(j, NULL, figures[a * s->n + b]);
        json_end(j);
    }
    json_end(j);
}

void check_print_json(FILE *out, const struct survey *s, const struct findings *f)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_array(&j, "hosts");
    for (int i = 0; i < s->n; i++)
        json_host(&j, &s->hosts[i]);
    json_end(&j);
    json_string(&j, "path", s->path);
    json_matrix(&j, "bandwidth_bytes_per_second", s, s->bandwidth);
    json_matrix(&j, "latency_seconds", s, s->latency);
    json_array(&j, "findings");
    for (int i = 0; i < f->n; i++) {
        json_record(&j, NULL, "severity=%s host=%s what=%s todo=%s",
                    f->v[i].severity == CHECK_WARNING ? "warning" : "note", f->v[i].host, f->v[i].problem,
                    f->v[i].todo);
    }
    json_end(&j);
    json_end(&j);
    fputc('\n', out);
}

void check_write_html(FILE *out, const void *report)
{
    const struct check_report *r = report;
    web_page_begin(out);
    check_print_json(out, r->survey, r->findings);
    web_page_end(out, page_script);
}
