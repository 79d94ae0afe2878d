/* test_judge.c: the warnings of `fishplate check` about hosts, from simulated facts and measurements: a
 * slow host, a slow pair, limits, ports, hosts that differ; and no warning if everything is in order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "test.h"

enum { N = 5 };

static struct facts hosts[N];
static double latency[N * N], bandwidth[N * N];
static struct survey survey = {.n = N, .hosts = hosts, .latency = latency, .bandwidth = bandwidth};

static void make_healthy_hosts(void)
{
    memset(hosts, 0, sizeof(hosts));
    for (int i = 0; i < N; i++) {
        struct facts *h = &hosts[i];
        snprintf(h->host, sizeof(h->host), "n%d", i);
        snprintf(h->version, sizeof(h->version), "1.0");
        h->memlock = UINT64_MAX;
        h->shm_free = h->shm_total = (uint64_t)4 << 30;
        h->cma = h->ptrace = 1;
        h->cpus = 8;
        h->nports = 1;
        h->ports[0] = (struct net_port){.device = "mlx5_0",
                                        .port = 1,
                                        .rate = 100000,
                                        .mtu = 4096,
                                        .made = NET_HARDWARE,
                                        .state = NET_ACTIVE,
                                        .chosen = 1};
        for (int k = 0; k < N; k++) {
            latency[i * N + k] = i == k ? 0 : 1.5e-6 + (i + k) * 1e-8;
            bandwidth[i * N + k] = i == k ? 0 : 12e9 - (i + k) * 1e8;
        }
    }
}

static void set_pair_value(double *figures, int a, int b, double value)
{
    figures[a * N + b] = figures[b * N + a] = value;
}

/* True if there is exactly one warning, which names this host and contains these words. */
static bool has_single_warning(const char *host, const char *words)
{
    struct findings f;
    int warnings = 0;
    bool fits = false;
    findings_judge(&survey, &f);
    for (int i = 0; i < f.n; i++) {
        warnings += f.v[i].severity == CHECK_WARNING;
        fits |= strcmp(f.v[i].host, host) == 0 && strstr(f.v[i].problem, words) && f.v[i].todo[0];
    }
    for (int i = 0; i < f.n && !(fits && warnings == 1); i++)
        printf("%s: %s\n", f.v[i].host, f.v[i].problem);
    free(f.v);
    return fits && warnings == 1;
}

int main(void)
{
    struct findings none;
    make_healthy_hosts();
    findings_judge(&survey, &none);
    EXPECT(none.n == 0);
    for (int i = 0; i < N; i++)
        if (i != 3)
            set_pair_value(bandwidth, 3, i, 4e9);
    EXPECT(has_single_warning("n3", "it is slow: 4000 MB/s"));
    make_healthy_hosts();
    set_pair_value(bandwidth, 1, 2, 2e9);
    EXPECT(has_single_warning("n1", "only 2000 MB/s to n2"));
    make_healthy_hosts();
    for (int i = 0; i < N; i++)
        if (i != 0)
            set_pair_value(latency, 0, i, 9e-6);
    EXPECT(has_single_warning("n0", "latency is 9.00 us"));
    make_healthy_hosts();
    set_pair_value(latency, 1, 4, 9e-6);
    EXPECT(has_single_warning("n1", "its latency to n4 is 9.00 us"));
    make_healthy_hosts(); /* three hosts, of which one has slow links to both others */
    survey.n = 3;
    const double far[9] = {0, 8e-6, 2576e-6, 8e-6, 0, 4400e-6, 2576e-6, 4400e-6, 0};
    memcpy(latency, far, sizeof(far));
    for (int i = 0; i < 9; i++)
        bandwidth[i] = i % 4 ? 1e10 : 0;
    EXPECT(has_single_warning("n2", "its latency is 2576.00 us"));
    survey.n = N;
    make_healthy_hosts();
    hosts[2].memlock = 64 << 10;
    EXPECT(has_single_warning("n2", "0.1 MB of memory may be locked"));
    make_healthy_hosts();
    hosts[4].shm_free = 60 << 20;
    EXPECT(has_single_warning("n4", "/dev/shm has 63 MB free"));
    make_healthy_hosts();
    hosts[1].cma = 0;
    EXPECT(has_single_warning("n1", "may not read another's memory"));
    make_healthy_hosts();
    snprintf(hosts[2].version, sizeof(hosts[2].version), "1.1");
    EXPECT(has_single_warning("n2", "it has Fishplate 1.1, n0 has 1.0"));
    make_healthy_hosts();
    hosts[3].ports[0].rate = 50000;
    EXPECT(has_single_warning("n3", "its port has 50 Gb/s"));
    make_healthy_hosts();
    hosts[3].ports[1] = hosts[3].ports[0];
    hosts[3].ports[1].port = 2;
    hosts[3].ports[1].state = NET_DOWN;
    hosts[3].nports = 2;
    EXPECT(has_single_warning("n3", "mlx5_0 port 2 is down"));
    make_healthy_hosts();
    hosts[1].ports[0].gid_index = -1;
    EXPECT(has_single_warning("n1", "has no usable GID"));
    make_healthy_hosts();
    hosts[1].clock = -3;
    findings_judge(&survey, &none);
    EXPECT(none.n == 1 && strstr(none.v[0].problem, "3.0 seconds behind"));
    free(none.v);
    return test_result();
}
