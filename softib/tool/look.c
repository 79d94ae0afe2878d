/* look.c: softib info, stat and ctl: read and change the registry of a running fabric.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"
#include "fabric/gid.h"
#include "fabric/registry.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const names[CNT_COUNT] = {
    [CNT_TX_PACKETS] = "tx_packets",   [CNT_TX_BYTES] = "tx_bytes", [CNT_RX_PACKETS] = "rx_packets",
    [CNT_RX_BYTES] = "rx_bytes",       [CNT_RNR_NAKS] = "rnr_naks", [CNT_RETRIES] = "retries",
    [CNT_TX_DROPS] = "tx_drops",       [CNT_RX_DROPS] = "rx_drops", [CNT_BAD_FRAMES] = "bad_frames",
    [CNT_UNREACHABLE] = "unreachable",
};

static void tool_sum_counters(const struct registry *r, uint32_t port, uint64_t out[CNT_COUNT])
{
    memset(out, 0, CNT_COUNT * sizeof(*out));
    for (uint32_t m = 1; m < MEMBERS; m++)
        for (int c = 0; atomic_load(&r->member[m].gen) && c < CNT_COUNT; c++)
            out[c] += atomic_load(&r->tally[m][port].count[c]);
}

static struct registry *require_registry(const struct fabric *f, uint64_t *key)
{
    struct registry *r = tool_registry(f, key);
    if (!r)
        fprintf(stderr,
                "softib: no process uses the fabric \"%s\" now; check that SOFTIB_FABRIC and the "
                "user are those of the job\n",
                f->name);
    return r;
}

int cmd_stat(const struct options *o)
{
    struct fabric f;
    uint64_t key, v[CNT_COUNT];
    if (!tool_fabric(&f))
        return 2;
    struct registry *r = require_registry(&f, &key);
    if (!r)
        return 1;
    if (o->json)
        printf("{\"fabric\": \"%s\", \"ports\": [", f.name);
    else
        printf("%-18s %-6s", "port", "state");
    for (int c = 0; !o->json && c < CNT_COUNT; c++)
        printf(" %13s", names[c]);
    printf("\n");
    for (uint32_t p = 0; p < f.nports; p++) {
        char name[48];
        const char *up = atomic_load(&r->port[p].up) ? "active" : "down";
        port_name(&f, p, name);
        tool_sum_counters(r, p, v);
        printf(o->json ? "%s {\"port\": \"%s\", \"state\": \"%s\"" : "%s%-18s %-6s", p && o->json ? "," : "",
               name, up);
        for (int c = 0; c < CNT_COUNT; c++)
            if (o->json)
                printf(", \"%s\": %llu", names[c], (unsigned long long)v[c]);
            else
                printf(" %13llu", (unsigned long long)v[c]);
        printf(o->json ? "}\n" : "\n");
    }
    if (o->json)
        printf("]}\n");
    fabric_free(&f);
    return 0;
}

static bool tool_process_exists(int pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Prints the IP addresses of the port for connection managers (librdmacm). */
static void info_addresses(const struct fabric *f, uint32_t p, bool json)
{
    uint8_t ip[16];
    uint32_t gid_index;
    char text[INET6_ADDRSTRLEN];
    printf(json ? ", \"addresses\": [" : " addresses");
    for (uint32_t i = 0; gid_get_ip(f, p, i, ip, &gid_index); i++) {
        const bool v4 = gid_is_v4(ip);
        inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? ip + 12 : ip, text, sizeof(text));
        printf(json ? "%s\"%s\"" : "%s%s", i ? (json ? ", " : ",") : json ? "" : " ", text);
    }
    printf(json ? "]" : "");
}

static void info_port(const struct fabric *f, const struct registry *r, uint32_t p, bool json)
{
    char name[48];
    struct fab_place at = {0};
    uint16_t lid = fabric_port_lid(f, p);
    fabric_find_lid(f, lid, &at);
    port_name(f, p, name);
    const char *up = !r ? "unused" : atomic_load(&r->port[p].up) ? "active" : "down";
    unsigned last = lid + (1u << f->lmc) - 1;
    unsigned long long guid = fabric_port_guid(at.node, at.hca, at.port);
    double rate = (double)f->port[p].rate / 1e6, lat = (double)f->port[p].latency / 1e3;
    char rate_text[32], latency_text[32];
    snprintf(rate_text, sizeof(rate_text), "%g MB/s", rate);
    snprintf(latency_text, sizeof(latency_text), "%g us", lat);
    if (json)
        printf("%s {\"port\": \"%s\", \"state\": \"%s\", \"lid\": %u, \"lids\": %u, \"guid\": \"%016llx\", "
               "\"rate_mb_s\": %g, \"latency_us\": %g",
               p ? "," : "", name, up, lid, 1u << f->lmc, guid, rate, lat);
    else
        printf("%-18s %-6s lid %u-%u guid %016llx rate %s latency %s", name, up, lid, last, guid,
               rate > 0 ? rate_text : "unlimited", lat > 0 ? latency_text : "none added");
    info_addresses(f, p, json);
    printf(json ? "}\n" : "\n");
}

static void info_hub(const struct fabric *f, const struct registry *r, bool json)
{
    const bool there = fabric_has_hub(f);
    int plugged = 0;
    for (unsigned w = 0; r && w < SOFTIB_SWITCH_PORTS / 64; w++)
        plugged += __builtin_popcountll(r->hub.plugged[w]);
    if (json)
        printf("], \"hub\": {\"there\": %s, \"plugged\": %d}", there ? "true" : "false", plugged);
    else if (there)
        printf("hub                up     barrier network, %d hosts plugged in\n", plugged);
}

int cmd_info(const struct options *o)
{
    struct fabric f;
    uint64_t key;
    char err[256];
    if (!tool_fabric(&f))
        return 2;
    if (!gid_read_interfaces(&f, err, sizeof(err)))
        fprintf(stderr, "softib: %s\n", err);
    struct registry *r = tool_registry(&f, &key);
    printf(o->json
               ? "{\"fabric\": \"%s\", \"nodes\": %u, \"hcas\": %u, \"ports_per_hca\": %u, \"wire\": \"%s\", "
                 "\"ports\": [\n"
               : "fabric %s: %u nodes, %u HCAs each, %u ports each, wire %s\n",
           f.name, f.nodes, f.hcas, f.ports, f.wire == WIRE_TCP ? "tcp" : "shm");
    for (uint32_t p = 0; p < f.nports; p++)
        info_port(&f, r, p, o->json);
    info_hub(&f, r, o->json);
    if (o->json)
        printf(", \"members\": [");
    for (uint32_t m = 1, n = 0; r && m < MEMBERS; m++) {
        const struct reg_member *x = &r->member[m];
        if (!atomic_load(&x->live) || !tool_process_exists(x->pid))
            continue;
        if (o->json)
            printf("%s{\"pid\": %d, \"node\": %u}", n++ ? ", " : "", x->pid, x->node);
        else
            printf("process %d on node%u\n", x->pid, x->node);
    }
    if (o->json)
        printf("]}\n");
    return 0;
}

static void tool_wake_members(const struct registry *r, uint64_t key)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char token = 1;
    for (uint32_t m = 1; m < MEMBERS; m++) {
        struct sockaddr_un a;
        if (!atomic_load(&r->member[m].live))
            continue;
        socklen_t len = member_doorbell_name(&a, key, &r->member[m]);
        sendto(fd, &token, 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&a, len);
    }
    close(fd);
}

/* Removes an adapter and takes all its ports down. */
static void remove_hca(struct registry *r, const struct fabric *f, uint32_t port)
{
    uint32_t first = fabric_bus_port(f, port);
    for (uint32_t p = first; p < first + f->ports; p++)
        atomic_store(&r->port[p].up, 0);
    atomic_store(&r->port[first].gone, 1);
}

static int ctl_usage(void)
{
    fprintf(stderr, "softib: usage: softib ctl port down|up node0/hca0/1\n"
                    "               softib ctl hca remove node0/hca0\n");
    return 2;
}

enum ctl { CTL_DOWN, CTL_UP, CTL_REMOVE };

static int tool_apply_control(const struct fabric *f, enum ctl what, const char *where, const bool *match)
{
    uint64_t key;
    struct registry *r = require_registry(f, &key);
    if (!r)
        return 1;
    for (uint32_t p = 0; p < f->nports; p++)
        if (match[p] && what == CTL_UP && atomic_load(&r->port[fabric_bus_port(f, p)].gone)) {
            fprintf(stderr, "softib: the adapter of %s was removed; its ports stay down\n", where);
            return 1;
        }
    for (uint32_t p = 0; p < f->nports; p++) {
        if (match[p] && what == CTL_REMOVE)
            remove_hca(r, f, p);
        else if (match[p])
            atomic_store(&r->port[p].up, what == CTL_UP);
    }
    tool_wake_members(r, key);
    return 0;
}

int cmd_ctl(const struct options *o, char **argv)
{
    struct fabric f;
    enum ctl what;
    (void)o;
    if (!argv[0] || !argv[1] || !argv[2] || argv[3])
        return ctl_usage();
    if (!strcmp(argv[0], "port") && !strcmp(argv[1], "down"))
        what = CTL_DOWN;
    else if (!strcmp(argv[0], "port") && !strcmp(argv[1], "up"))
        what = CTL_UP;
    else if (!strcmp(argv[0], "hca") && !strcmp(argv[1], "remove"))
        what = CTL_REMOVE;
    else
        return ctl_usage();
    if (!tool_fabric(&f))
        return 2;
    bool *match = calloc(f.nports, sizeof(bool));
    int rc = 2;
    if (!match || !fabric_select(&f, argv[2], match))
        fprintf(stderr, "softib: no port %s in the fabric; softib info lists them\n", argv[2]);
    else
        rc = tool_apply_control(&f, what, argv[2], match);
    free(match);
    fabric_free(&f);
    return rc;
}
