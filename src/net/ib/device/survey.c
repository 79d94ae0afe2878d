/* survey.c: queries verbs and the kernel about every adapter and port; see survey.h. The data of the kernel
 * is read from sysfs, in which softib has no entries.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/device/survey.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/tunable.h"
#include "base/util.h"
#include "boot/launch_env.h"
#include "gpu/gpu.h"
#include "net/ib/device/near.h"
#include "net/ib/policy/devlist.h"

static TUNABLE_STRING(device_list, "IB_DEVICES",
                      "Network adapters that may be used, best first, by name or name:port, for example "
                      "mlx5_0,mlx5_1:2. ^mlx5_2 excludes one. A port of the list that is down "
                      "at the start is used as a further rail when it comes up.");
static TUNABLE_INT(
    gid_choice, "IB_GID_INDEX", -1, -1, 255,
    "Entry of the port's GID table to use. -1: RoCE version 2 with an IPv4 address if there is one.");

#define VENDOR_RXE 0xffffff /* vendor id of the kernel's soft-RoCE */

const char *ib_survey_device_list(void)
{
    return device_list.text;
}

bool ib_survey_names_are_typed(void)
{
    return *device_list.text && device_list.source > SOURCE_USER_FILE;
}

/* ---- from sysfs ---- */

/* Reads the first line of a file in the device's sysfs folder; "" if there is none. */
static void read_line(const char *device, const char *file, char *out, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, file);
    FILE *in = fopen(path, "re");
    out[0] = '\0';
    if (!in)
        return;
    if (!fgets(out, (int)size, in))
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    fclose(in);
}

/* True if this process may run on a processor close to the adapter, or if the location is unknown. */
static bool is_near_processor(const char *device)
{
    char list[1024];
    cpu_set_t mine;
    read_line(device, "device/local_cpulist", list, sizeof(list));
    if (!*list || sched_getaffinity(0, sizeof(mine), &mine) != 0)
        return true;
    for (char *at = list; *at;) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at)
            return true;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET((size_t)cpu, &mine))
                return true;
        at = end + (*end == ',');
    }
    return false;
}

/* True for a device without hardware, which sysfs lists under /devices/virtual. */
static bool is_virtual(const char *device)
{
    char path[PATH_MAX], real[PATH_MAX];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s", device);
    return realpath(path, real) && strstr(real, "/devices/virtual/");
}

/* Derives the kind of wire from SOFTIB_FABRIC: the last wire= counts; the default is shared memory. */
static enum net_made softib_wire_kind(void)
{
    const char *fabric = env_get(ENV_SOFTIB_FABRIC), *at = fabric;
    bool tcp = false;
    while (at && (at = strstr(at, "wire=")) != NULL) {
        at += strlen("wire=");
        tcp = strncmp(at, "tcp", 3) == 0;
    }
    return tcp ? NET_SOFTIB_TCP : NET_SOFTIB_MEMORY;
}

static enum net_made port_implementation(const struct verbs *v, const char *device,
                                         const struct ibv_device_attr *attr)
{
    if (v->softib)
        return softib_wire_kind();
    return attr->vendor_id == VENDOR_RXE || is_virtual(device) ? NET_SOFT_ROCE : NET_HARDWARE;
}

/* ---- addresses ---- */

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}; /* an IPv4 address as a GID */

static bool gid_is_v2(const struct verbs *v, struct ibv_context *context, const struct net_port *p, int index)
{
    struct ibv_gid_entry entry;
    if (v->query_gid_ex)
        return v->query_gid_ex(context, p->port, (uint32_t)index, &entry, 0, sizeof(entry)) == 0 &&
               entry.gid_type == IBV_GID_TYPE_ROCE_V2;
    char file[80], type[32]; /* a library older than rdma-core 32 */
    snprintf(file, sizeof(file), "ports/%d/gid_attrs/types/%d", p->port, index);
    read_line(p->device, file, type, sizeof(type));
    return strstr(type, "v2") != NULL;
}

/* Chooses the GID index. On RoCE, version 2 (routable) is preferred, then an IPv4 address, which
 * administrators usually configure. */
static int choose_gid(const struct verbs *v, struct ibv_context *context, const struct net_port *p,
                      int entries)
{
    static const union ibv_gid zero;
    int best = 0, best_worth = -1;
    union ibv_gid g;
    if (gid_choice.value >= 0)
        return (int)gid_choice.value;
    if (p->link == NET_INFINIBAND)
        return 0;
    for (int i = 0; i < entries; i++) {
        if (v->query_gid(context, p->port, i, &g) != 0 || memcmp(&g, &zero, sizeof(g)) == 0)
            continue;
        int worth = 2 * gid_is_v2(v, context, p, i) + (memcmp(g.raw, mapped, sizeof(mapped)) == 0);
        if (worth > best_worth) {
            best = i;
            best_worth = worth;
        }
    }
    return best;
}

static unsigned prefix_length(uint32_t mask)
{
    return mask ? 32u - (unsigned)__builtin_ctz(mask) : 0;
}

/* Returns the network of a local IPv4 address: prefix length << 32 | network number; 0 if unknown. */
static uint64_t ipv4_network_id(const uint8_t *address)
{
    struct ifaddrs *list;
    uint64_t network = 0;
    if (getifaddrs(&list) != 0)
        return 0;
    for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
        if (!a->ifa_addr || !a->ifa_netmask || a->ifa_addr->sa_family != AF_INET)
            continue;
        const struct sockaddr_in *in = (const void *)a->ifa_addr, *mask = (const void *)a->ifa_netmask;
        if (memcmp(&in->sin_addr, address, 4) != 0)
            continue;
        uint32_t m = ntohl(mask->sin_addr.s_addr);
        network = (uint64_t)prefix_length(m) << 32 | (ntohl(in->sin_addr.s_addr) & m);
    }
    freeifaddrs(list);
    return network;
}

static uint64_t port_subnet_id(const struct net_port *p)
{
    uint64_t prefix = 0;
    if (p->link != NET_INFINIBAND && memcmp(p->gid, mapped, sizeof(mapped)) == 0)
        return ipv4_network_id(p->gid + sizeof(mapped));
    for (int i = 0; i < 8; i++)
        prefix = prefix << 8 | p->gid[i];
    return prefix;
}

/* ---- ports ---- */

int ib_query_port(const struct verbs *v, struct ibv_context *context, int port, struct ibv_port_attr *out)
{
    struct verbs_context *newer = verbs_get_ctx_op(context, query_port);
    memset(out, 0, sizeof(*out));
    if (newer)
        return newer->query_port(context, (uint8_t)port, out, sizeof(*out));
    return v->query_port(context, (uint8_t)port, (struct _compat_ibv_port_attr *)out);
}

void ib_survey_port(const struct verbs *v, struct ibv_context *context, const struct ibv_port_attr *a,
                    struct net_port *p)
{
    union ibv_gid gid;
    p->state = (uint8_t)MIN((unsigned)a->state, (unsigned)NET_DEFERRED);
    p->rate = net_link_rate(a->active_width, a->active_speed);
    p->mtu = a->active_mtu >= IBV_MTU_256 && a->active_mtu <= IBV_MTU_4096
                 ? (uint16_t)(128u << (unsigned)a->active_mtu)
                 : 0;
    p->lid = a->lid;
    p->link = context->device->transport_type == IBV_TRANSPORT_IWARP ? NET_IWARP
              : a->link_layer == IBV_LINK_LAYER_ETHERNET             ? NET_ROCE
                                                                     : NET_INFINIBAND;
    p->gid_index = (int16_t)choose_gid(v, context, p, a->gid_tbl_len);
    if (v->query_gid(context, p->port, p->gid_index, &gid) == 0)
        memcpy(p->gid, gid.raw, sizeof(p->gid));
    else
        p->gid_index = -1;
    p->subnet = port_subnet_id(p);
}

static int survey_grow(struct ib_survey *s, uint32_t n)
{
    struct net_port *more = realloc(s->ports, (s->count + n) * sizeof(*more));
    if (!more)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a list of %u ports", s->count + n);
    s->ports = more;
    return 0;
}

/* Adds a device without ports to the survey if it is a barrier network. */
static int add_wires_device(const struct verbs *v, struct ibv_context *context, struct ib_survey *s)
{
    if (!v->wires.hosts || v->wires.hosts(context) <= 0)
        return 0;
    int rc = survey_grow(s, 1);
    if (rc != 0)
        return rc;
    struct net_port *p = &s->ports[s->count++];
    *p = (struct net_port){.link = NET_WIRES,
                           .made = (uint8_t)softib_wire_kind(),
                           .state = NET_ACTIVE,
                           .gid_index = -1,
                           .numa = -1};
    snprintf(p->device, sizeof(p->device), "%s", v->get_device_name(context->device));
    p->place = (int16_t)devlist_find_position(device_list.text, p->device, 0);
    return 0;
}

static int add_device_ports(const struct verbs *v, struct ibv_device *device, struct ib_survey *s)
{
    struct ibv_context *context = v->open_device(device);
    struct ibv_device_attr attr;
    if (!context) /* a device that this user may not open is ignored; a lack of descriptors is an error */
        return errno == EMFILE || errno == ENFILE ? err_set(MPI_ERR_OTHER, "%s cannot be opened: %s",
                                                            v->get_device_name(device), err_reason(errno))
                                                  : 0;
    s->devices++;
    uint32_t ports = v->query_device(context, &attr) == 0 ? attr.phys_port_cnt : 0;
    int rc = ports ? survey_grow(s, ports) : add_wires_device(v, context, s);
    for (uint32_t k = 1; k <= ports && rc == 0; k++) {
        struct net_port *p = &s->ports[s->count];
        struct ibv_port_attr a;
        char numa[16];
        if (ib_query_port(v, context, (int)k, &a) != 0)
            continue;
        memset(p, 0, sizeof(*p));
        snprintf(p->device, sizeof(p->device), "%s", v->get_device_name(device));
        snprintf(p->firmware, sizeof(p->firmware), "%.31s", attr.fw_ver);
        read_line(p->device, "device/numa_node", numa, sizeof(numa));
        p->numa = (int16_t)(*numa && !v->softib ? atoi(numa) : -1);
        p->near = v->softib || is_near_processor(p->device);
        p->port = (uint8_t)k;
        p->place = (int16_t)devlist_find_position(device_list.text, p->device, (int)k);
        p->made = (uint8_t)port_implementation(v, p->device, &attr);
        ib_survey_port(v, context, &a, p);
        s->count++;
    }
    v->close_device(context);
    return rc;
}

int ib_survey(const struct verbs *v, struct ib_survey *out)
{
    struct ib_survey s = {0};
    int rc = 0;
    struct ibv_device **list = v->get_device_list(NULL);
    for (int i = 0; list && list[i] && rc == 0; i++)
        rc = add_device_ports(v, list[i], &s);
    if (list)
        v->free_device_list(list);
    char gpu[16];
    if (!v->softib && rc == 0 && gpu_find_current(gpu))
        ib_mark_ports_near_gpu(s.ports, s.count, "/sys", gpu);
    if (rc != 0)
        free(s.ports);
    else
        *out = s;
    return rc;
}

const char *ib_survey_unknown_name(const struct ib_survey *s, size_t *len)
{
    const char *at = device_list.text, *entry;
    while ((entry = devlist_next(&at, len)) != NULL) {
        bool known = false;
        for (uint32_t i = 0; i < s->count; i++)
            known |= devlist_entry_matches(entry, *len, s->ports[i].device, s->ports[i].port);
        if (!known)
            return entry;
    }
    return NULL;
}
