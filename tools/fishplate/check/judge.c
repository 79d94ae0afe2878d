/* judge.c: derives findings from the facts and figures of all hosts, each with a remedy. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cli/number.h"

#define MB            1e6
#define MEMLOCK_MIN   ((uint64_t)1 << 30)   /* bytes; a job with large messages registers about as much */
#define SHM_MIN       ((uint64_t)128 << 20) /* bytes; rings and blocks of some dozen ranks */
#define CLOCK_MAX     0.5
#define SLOW_HOST     0.7 /* fraction of the other hosts' median */
#define SLOW_PAIR     0.5
#define LATE_HOST     2.0
#define LATE_PAIR     4.0  /* times the lowest latency of both hosts to any host */
#define LATENCY_LEAST 5e-7 /* seconds; smaller differences are noise */

static void findings_add(struct findings *f, enum severity severity, const char *host, const char *todo,
                         const char *what, ...) __attribute__((format(printf, 5, 6)));
static void findings_add(struct findings *f, enum severity severity, const char *host, const char *todo,
                         const char *what, ...)
{
    struct finding *grown = realloc(f->v, (size_t)(f->n + 1) * sizeof(*grown));
    va_list args;
    if (!grown)
        return;
    f->v = grown;
    struct finding *it = &grown[f->n++];
    memset(it, 0, sizeof(*it));
    it->severity = severity;
    snprintf(it->host, sizeof(it->host), "%s", host);
    snprintf(it->todo, sizeof(it->todo), "%s", todo);
    va_start(args, what);
    vsnprintf(it->problem, sizeof(it->problem), what, args);
    va_end(args);
}

double survey_get_host_median(const struct survey *s, const double *figures, int host)
{
    double *v = malloc((size_t)s->n * sizeof(*v)), m = 0;
    int n = 0;
    for (int i = 0; v && i < s->n; i++)
        if (i != host && figures[host * s->n + i] > 0)
            v[n++] = figures[host * s->n + i];
    if (v)
        m = number_median(v, (size_t)n);
    free(v);
    return m;
}

/* Returns the fastest figure of a host's pairs: a host is slow only if all its pairs are slow. */
static double survey_get_best_figure(const struct survey *s, const double *figures, int host, bool least)
{
    double best = 0;
    for (int i = 0; i < s->n; i++) {
        const double x = figures[host * s->n + i];
        if (i != host && x > 0 && (best == 0 || (least ? x < best : x > best)))
            best = x;
    }
    return best;
}

/* Returns the median over all hosts but `host`. */
static double survey_get_others_median(const struct survey *s, const double *medians, int host)
{
    double *v = malloc((size_t)s->n * sizeof(*v)), m = 0;
    int n = 0;
    for (int i = 0; v && i < s->n; i++)
        if (i != host)
            v[n++] = medians[i];
    if (v)
        m = number_median(v, (size_t)n);
    free(v);
    return m;
}

static void judge_host_pair(const struct survey *s, const double *rate, const double *time, int a, int b,
                            struct findings *f)
{
    const double have = s->bandwidth[a * s->n + b], least = fmin(rate[a], rate[b]);
    const double late = s->latency[a * s->n + b], most = fmax(time[a], time[b]);
    static const char todo[] =
        "Both hosts are fine with others: check the path between these two: switches, routing, cables.";
    if (have > 0 && have < SLOW_PAIR * least)
        findings_add(f, CHECK_WARNING, s->hosts[a].host, todo,
                     "only %.0f MB/s to %s, where both have %.0f or more to other hosts", have / MB,
                     s->hosts[b].host, least / MB);
    else if (late > LATE_PAIR * most && late - most > LATENCY_LEAST)
        findings_add(f, CHECK_WARNING, s->hosts[a].host, todo,
                     "its latency to %s is %.2f us, where both have %.2f us or less to other hosts",
                     s->hosts[b].host, late * 1e6, most * 1e6);
}

/* Finds slow hosts and slow pairs. Two hosts give no finding, because either may be the slow one. */
static void judge_hosts(const struct survey *s, struct findings *f)
{
    double *rate = calloc((size_t)s->n, sizeof(*rate)), *time = calloc((size_t)s->n, sizeof(*time));
    for (int h = 0; rate && time && h < s->n; h++) {
        rate[h] = survey_get_best_figure(s, s->bandwidth, h, false);
        time[h] = survey_get_best_figure(s, s->latency, h, true);
    }
    for (int h = 0; rate && time && s->n > 2 && h < s->n; h++) {
        const double rate_else = survey_get_others_median(s, rate, h),
                     time_else = survey_get_others_median(s, time, h);
        if (rate[h] > 0 && rate[h] < SLOW_HOST * rate_else)
            findings_add(
                f, CHECK_WARNING, s->hosts[h].host,
                "Compare its cable, switch port, PCIe width (lspci -vv), firmware and processor frequency "
                "with the "
                "others; leave it out of the host list until then.",
                "it is slow: %.0f MB/s to the other hosts at most, where they have %.0f among themselves",
                rate[h] / MB, rate_else / MB);
        if (time[h] > LATE_HOST * time_else && time[h] - time_else > LATENCY_LEAST)
            findings_add(
                f, CHECK_WARNING, s->hosts[h].host,
                "Look for another load on it (top), power saving (cpupower frequency-info) and its number of "
                "hops.",
                "its latency is %.2f us at least, that of the others %.2f us", time[h] * 1e6,
                time_else * 1e6);
    }
    for (int a = 0; rate && time && s->n > 2 && a < s->n; a++)
        for (int b = a + 1; b < s->n; b++)
            judge_host_pair(s, rate, time, a, b, f);
    free(rate);
    free(time);
}

static bool has_hardware(const struct facts *h)
{
    for (int i = 0; i < h->nports && i < FACT_PORTS; i++)
        if (h->ports[i].made == NET_HARDWARE && h->ports[i].state == NET_ACTIVE)
            return true;
    return false;
}

static void judge_limits(const struct facts *h, struct findings *f)
{
    if (h->memlock < MEMLOCK_MIN)
        findings_add(
            f, has_hardware(h) ? CHECK_WARNING : CHECK_NOTE, h->host,
            "Set `* hard memlock unlimited` and `* soft memlock unlimited` in /etc/security/limits.d/, and "
            "LimitMEMLOCK=infinity for the service that starts jobs (slurmd, sshd).",
            "only %.1f MB of memory may be locked, and an adapter needs locked memory",
            (double)h->memlock / MB);
    if (h->shm_free < SHM_MIN)
        findings_add(
            f, CHECK_WARNING, h->host,
            "Remove what lies there, enlarge it (mount -o remount,size=4G /dev/shm), or start the container "
            "with "
            "--shm-size=4g.",
            "/dev/shm has %.0f MB free of %.0f, too little for the messages of many ranks on one host",
            (double)h->shm_free / MB, (double)h->shm_total / MB);
    if (!h->cma)
        findings_add(
            f, CHECK_WARNING, h->host,
            "In a container allow ptrace (--cap-add=SYS_PTRACE) or another seccomp profile; else large "
            "messages on "
            "one host are copied twice.",
            "one process may not read another's memory (CMA)");
    else if (h->ptrace > 1)
        findings_add(
            f, CHECK_WARNING, h->host, "sysctl kernel.yama.ptrace_scope=1",
            "kernel.yama.ptrace_scope is %d: ranks may not read each other's memory (CMA), and large "
            "messages on "
            "one host are copied twice",
            h->ptrace);
    if (fabs(h->clock) - h->clock_error > CLOCK_MAX)
        findings_add(f, CHECK_NOTE, h->host,
                     "Run chrony or ntpd: times in logs of different hosts cannot be compared.",
                     "its clock is %.1f seconds %s that of the first host", fabs(h->clock),
                     h->clock > 0 ? "ahead of" : "behind");
}

static void judge_ports(const struct facts *h, struct findings *f)
{
    char name[64];
    for (int i = 0; i < h->nports && i < FACT_PORTS; i++) {
        const struct net_port *p = &h->ports[i];
        if (p->made != NET_HARDWARE)
            continue;
        net_port_name(p, name, sizeof(name));
        if (p->state != NET_ACTIVE)
            findings_add(
                f, CHECK_WARNING, h->host,
                "Check cable and switch port; on InfiniBand a subnet manager must run (opensm, or in the "
                "switch).",
                "%s is %s", name, net_port_state(p));
        else if (p->gid_index < 0)
            findings_add(f, CHECK_WARNING, h->host, "Give its network interface an IP address.",
                         "%s has no usable GID, so RoCE cannot use it", name);
        else if (p->mtu < 2048)
            findings_add(f, CHECK_NOTE, h->host,
                         "Set the MTU of its interface to 4200 or more, on the switches too.",
                         "%s has an MTU of %u", name, p->mtu);
    }
}

static const struct net_port *find_used_port(const struct facts *h)
{
    for (int i = 0; i < h->nports && i < FACT_PORTS; i++)
        if (h->ports[i].chosen)
            return &h->ports[i];
    return NULL;
}

/* Compares facts that must be equal on all hosts with those of the first host. */
static void judge_equal_facts(const struct survey *s, struct findings *f)
{
    const struct facts *first = &s->hosts[0];
    const struct net_port *port = find_used_port(first);
    for (int i = 1; i < s->n; i++) {
        const struct facts *h = &s->hosts[i];
        const struct net_port *p = find_used_port(h);
        if (strcmp(h->version, first->version) != 0)
            findings_add(f, CHECK_WARNING, h->host, "Install the same version on all hosts.",
                         "it has Fishplate %s, %s has %s", h->version, first->host, first->version);
        if (h->cpus != first->cpus)
            findings_add(f, CHECK_NOTE, h->host,
                         "Its ranks will be faster or slower than others: see that this is meant.",
                         "it has %d processors for a job, %s has %d", h->cpus, first->host, first->cpus);
        if (has_hardware(h) != has_hardware(first))
            findings_add(f, CHECK_WARNING, has_hardware(h) ? first->host : h->host,
                         "See `fishplate info --devices` there: driver, cable, subnet manager.",
                         "it has no active adapter, others have; all ranks then go without");
        else if (p && port && (p->rate != port->rate || p->mtu != port->mtu))
            findings_add(f, CHECK_WARNING, h->host,
                         "Look for a cable that negotiated less, and set equal MTUs.",
                         "its port has %g Gb/s and MTU %u, that of %s %g Gb/s and MTU %u", p->rate / 1000.0,
                         p->mtu, first->host, port->rate / 1000.0, port->mtu);
    }
    bool any = false;
    for (int i = 0; i < s->n; i++)
        any |= has_hardware(&s->hosts[i]);
    if (!any && s->n > 1)
        findings_add(
            f, CHECK_NOTE, "",
            "If there should be one, see `fishplate info --devices`; FISHPLATE_REQUIRE=ib ends a job that "
            "would go without.",
            "no host has an active InfiniBand or RoCE adapter: messages between hosts go through software");
}

static int judge_compare_by_severity(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    return (int)y->severity - (int)x->severity;
}

void findings_judge(const struct survey *s, struct findings *out)
{
    *out = (struct findings){0};
    judge_hosts(s, out);
    for (int i = 0; i < s->n; i++) {
        judge_limits(&s->hosts[i], out);
        judge_ports(&s->hosts[i], out);
    }
    judge_equal_facts(s, out);
    if (out->n > 0)
        qsort(out->v, (size_t)out->n, sizeof(out->v[0]), judge_compare_by_severity);
}
