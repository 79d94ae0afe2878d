/* developer_report.c: `fishplate check --report`: one page that a user with adapters can send to the
 * developers. Hosts are numbered. The page contains no addresses, no names of hosts or users, and of the
 * environment only Fishplate's settings.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../command.h"
#include "api/inside.h"
#include "base/tunable.h"
#include "check.h"

static void report_head(FILE *out)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING], when[32];
    int len;
    const time_t now = time(NULL);
    struct tm utc;
    MPI_Get_library_version(library, &len);
    strftime(when, sizeof(when), "%Y-%m-%d", gmtime_r(&now, &utc));
    fprintf(
        out,
        "# Fishplate report, %s\n\n"
        "%s\n\n"
        "Hosts are numbered. There are no addresses and no names of hosts or users here; read it before you "
        "send "
        "it.\n"
        "A line on the program, the cables and the switches helps. So do the figures of `ib_send_lat` and "
        "`ib_write_bw`\n"
        "between the same two hosts.\n",
        when, library);
}

static void report_host(FILE *out, const struct facts *h)
{
    char name[96];
    fprintf(out, "\n%s: Fishplate %s, Linux %s, %d processor%s, %.1f GB memory, ", h->host, h->version,
            h->kernel, h->cpus, h->cpus == 1 ? "" : "s", (double)h->memory / 1e9);
    check_print_memory_limits(out, h);
    fputc('\n', out);
    for (int i = 0; i < h->nports && i < FACT_PORTS; i++) {
        const struct net_port *p = &h->ports[i];
        net_port_describe(p, name, sizeof(name));
        fprintf(out, "- %s, firmware %s, %s, MTU %u, GID index %d, NUMA node %d%s\n", name,
                p->firmware[0] ? p->firmware : "unknown", net_port_state(p), p->mtu, p->gid_index, p->numa,
                p->chosen ? ", used between hosts" : "");
    }
    if (h->nports == 0)
        fprintf(out, "- no adapter: %s\n", h->no_ports);
}

static void report_settings(FILE *out)
{
    const struct fishplate_inside *in = get_library_table();
    char value[256];
    int n = 0;
    fprintf(out, "\n## Settings\n\n");
    for (size_t i = 0; i < in->tunables_count(); i++) {
        const struct tunable *t = in->tunables_get(i);
        if (t->source == SOURCE_DEFAULT)
            continue;
        in->tunable_format(t, value, sizeof(value));
        /* Paths are omitted: they may contain a user's name. */
        fprintf(out, "- FISHPLATE_%s%s=%s\n", t->laboratory ? "LAB=" : "", t->name,
                strchr(value, '/') ? "(a path)" : value);
        n++;
    }
    if (n == 0)
        fprintf(out, "Every setting has its default.\n");
}

static void report_sizes(FILE *out, const struct survey *s)
{
    fprintf(out,
            "\nFrom %s to %s, %s:\n\n| bytes | us, half of a ping-pong | MB/s, one way |\n|---:|---:|---:|\n",
            s->hosts[0].host, s->hosts[1].host, s->path);
    for (int i = 0; i < CHECK_SIZES; i++)
        fprintf(out, "| %zu | %.2f | %.1f |\n", check_sizes[i], s->of_size[i].latency * 1e6,
                s->of_size[i].bandwidth / 1e6);
}

static int report_write(FILE *out, const struct survey *s)
{
    struct findings f = {0};
    report_head(out);
    fprintf(out, "\n## Hosts\n");
    for (int i = 0; i < s->n; i++)
        report_host(out, &s->hosts[i]);
    report_settings(out);
    fprintf(out, "\n## Measured\n");
    if (s->n > 1) {
        report_sizes(out, s);
        fprintf(out, "\n```text");
        check_print_figures(out, s);
        fprintf(out, "```\n");
    } else {
        fprintf(out, "\nThere is one host, so that nothing was measured between hosts: fishplate check "
                     "--report FILE n1,n2\n");
    }
    findings_judge(s, &f);
    fprintf(out, "\n## Findings\n\n");
    check_print_findings(out, s, &f);
    free(f.v);
    return ferror(out) != 0;
}

int check_write_report(const char *path, const struct survey *s)
{
    struct survey numbered = *s;
    numbered.hosts = malloc((size_t)s->n * sizeof(*s->hosts));
    FILE *out = numbered.hosts ? fopen(path, "w") : NULL;
    bool failed = !out;
    for (int i = 0; out && i < s->n; i++) {
        struct facts *h = &numbered.hosts[i];
        *h = s->hosts[i];
        snprintf(h->host, sizeof(h->host), "host-%d", i + 1);
        snprintf(h->own_name, sizeof(h->own_name), "%s", h->host);
    }
    if (out) {
        failed = report_write(out, &numbered) != 0;
        failed = fclose(out) != 0 || failed;
    }
    free(numbered.hosts);
    if (failed)
        fprintf(stderr, "fishplate check: cannot write %s: %s.\n", path, strerror(errno));
    else
        fprintf(stderr, "fishplate check: %s was written on %s.\n", path, s->hosts[0].host);
    return failed ? 2 : 0;
}
