/* device.c: chooses an adapter and a port. Active ports only; the user's list first; among equals the one on
 * this process's NUMA node, then the faster one. With no active port anywhere, softib is the adapter.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/device.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/tunable.h"
#include "boot/softib.h"
#include "net/ib/devlist.h"

static TUNABLE_STRING(
    verbs_choice, "VERBS",
    "Which verbs library drives InfiniBand: auto (the system's when it has an active port, else "
    "softib), system, softib, or the path of a libibverbs.so.1.");
static TUNABLE_STRING(
    device_list, "IB_DEVICES",
    "Adapters to use, best first, by name or name:port, e.g. mlx5_0,mlx5_1:2; ^mlx5_2 excludes one.");
static TUNABLE_INT(
    gid_choice, "IB_GID_INDEX", -1, -1, 255,
    "Entry of the port's GID table to use; -1: RoCE version 2 with an IPv4 address if there is one.");
static TUNABLE_INT(pkey_choice, "IB_PKEY_INDEX", 0, 0, 127, "Entry of the port's partition table to use.");
static TUNABLE_INT(service_level, "IB_SERVICE_LEVEL", 0, 0, 15, "Service level of connections.");
static TUNABLE_CHOICE(
    last_byte, "IB_LAST_BYTE", 0, "auto|yes|no",
    "Whether the adapter places the last byte of an RDMA write last, so that the end of a message can "
    "be polled for in memory. auto asks the adapter.");

static int numa_of_device(const char *device)
{
    char path[160];
    int node = -1;
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/numa_node", device);
    FILE *in = fopen(path, "re");
    if (in) {
        if (fscanf(in, "%d", &node) != 1)
            node = -1;
        fclose(in);
    }
    return node;
}

static int numa_of_process(void)
{
    unsigned cpu, node;
    return getcpu(&cpu, &node) == 0 ? (int)node : -1;
}

/* Larger is better. Rates: width code 1, 2, 4, 8 times the lane's speed code, which grows with the speed. */
static long port_worth(const char *device, const struct ibv_port_attr *port, int place)
{
    int numa = numa_of_device(device);
    bool near = numa < 0 || numa == numa_of_process();
    return -1000000L * place + 100000L * near + (long)port->active_width * port->active_speed;
}

/* The exported function fills only the first members of the structure; a newer one is in the context. */
static int query_port(const struct verbs *v, struct ibv_context *context, int port, struct ibv_port_attr *out)
{
    struct verbs_context *newer = verbs_get_ctx_op(context, query_port);
    memset(out, 0, sizeof(*out));
    if (newer)
        return newer->query_port(context, (uint8_t)port, out, sizeof(*out));
    return v->query_port(context, (uint8_t)port, (struct _compat_ibv_port_attr *)out);
}

struct choice {
    struct ibv_device *device;
    int port;
    long worth;
    int devices, inactive, unwanted; /* devices seen at all; ports that are not active, or not in the list */
};

static void look_at_device(const struct verbs *v, struct ibv_device *device, struct choice *best)
{
    const char *name = v->get_device_name(device);
    struct ibv_context *context = v->open_device(device);
    struct ibv_device_attr attr;
    if (!context)
        return;
    best->devices++;
    int ports = v->query_device(context, &attr) == 0 ? attr.phys_port_cnt : 0;
    for (int port = 1; port <= ports; port++) {
        struct ibv_port_attr p;
        int place = devlist_place(device_list.text, name, port);
        if (place < 0 || query_port(v, context, port, &p) != 0) {
            best->unwanted += place < 0;
            continue;
        }
        if (p.state != IBV_PORT_ACTIVE) {
            best->inactive++;
            continue;
        }
        long worth = port_worth(name, &p, place);
        if (!best->device || worth > best->worth) {
            best->device = device;
            best->port = port;
            best->worth = worth;
        }
    }
    v->close_device(context);
}

/* "Active MTU 4096" and the like come from the port; what must be chosen is the GID. */
static bool gid_is_ipv4(const union ibv_gid *g)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return memcmp(g->raw, mapped, sizeof(mapped)) == 0;
}

static bool gid_is_v2(const char *device, int port, int index)
{
    char path[192], type[32] = "";
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", device, port, index);
    FILE *in = fopen(path, "re");
    if (in) {
        if (!fgets(type, sizeof(type), in))
            type[0] = '\0';
        fclose(in);
    }
    return strstr(type, "v2") != NULL;
}

/* RoCE: version 2 is routable and what switches expect; an IPv4 address is what administrators configure. */
static int choose_gid(struct ib_device *d, const char *device)
{
    static const union ibv_gid zero;
    int best = 0, best_worth = -1;
    union ibv_gid g;
    if (gid_choice.value >= 0)
        return (int)gid_choice.value;
    if (!d->address.ethernet)
        return 0;
    for (int i = 0; i < d->port_attr.gid_tbl_len; i++) {
        if (d->verbs.query_gid(d->context, d->port, i, &g) != 0 || memcmp(&g, &zero, sizeof(g)) == 0)
            continue;
        int worth = 2 * gid_is_v2(device, d->port, i) + gid_is_ipv4(&g);
        if (worth > best_worth) {
            best = i;
            best_worth = worth;
        }
    }
    return best;
}

static int open_port(struct ib_device *d, const struct choice *choice)
{
    const struct verbs *v = &d->verbs;
    const char *device = v->get_device_name(choice->device);
    snprintf(d->name, sizeof(d->name), "%s port %d", device, choice->port);
    d->context = v->open_device(choice->device);
    if (!d->context)
        return err_set(MPI_ERR_OTHER, "InfiniBand device %s cannot be opened", d->name);
    d->port = (uint8_t)choice->port;
    union ibv_gid gid;
    if (v->query_device(d->context, &d->attr) != 0 ||
        query_port(v, d->context, d->port, &d->port_attr) != 0 || !(d->pd = v->alloc_pd(d->context)))
        return err_set(MPI_ERR_OTHER, "InfiniBand device %s does not answer", d->name);
    d->address = (struct ib_address){.lid = d->port_attr.lid,
                                     .mtu = (uint8_t)d->port_attr.active_mtu,
                                     .ethernet = d->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET};
    d->gid_index = (uint8_t)choose_gid(d, device);
    if (v->query_gid(d->context, d->port, d->gid_index, &gid) != 0)
        return err_set(MPI_ERR_OTHER, "%s has no GID with index %d (FISHPLATE_IB_GID_INDEX)", d->name,
                       d->gid_index);
    memcpy(d->address.gid, gid.raw, sizeof(gid.raw));
    d->address.subnet = d->address.ethernet ? 0 : gid.global.subnet_prefix;
    d->pkey_index = (uint16_t)pkey_choice.value;
    d->ask_last_byte = last_byte.value == 0;
    d->last_byte_last = last_byte.value == 1;
    return 0;
}

/* There are devices, and none will do. */
static int nothing_usable(const char *path, const struct choice *c)
{
    if (c->inactive == 0 && c->unwanted > 0)
        return err_set(MPI_ERR_OTHER, "FISHPLATE_IB_DEVICES=%s names none of the %d port%s that %s knows",
                       device_list.text, c->unwanted, c->unwanted == 1 ? "" : "s", path);
    return err_set(MPI_ERR_OTHER, "%s knows %d device%s, but none of the %d port%s %s is active", path,
                   c->devices, c->devices == 1 ? "" : "s", c->inactive, c->inactive == 1 ? "" : "s",
                   *device_list.text ? "that FISHPLATE_IB_DEVICES allows" : "there");
}

static int try_library(struct ib_device *d, const char *path)
{
    struct choice best = {0};
    int rc = verbs_load(path, &d->verbs);
    if (rc != 0)
        return rc;
    d->verbs.fork_init(); /* before anything is registered; where it does not work, nothing changes */
    struct ibv_device **list = d->verbs.get_device_list(NULL);
    for (int i = 0; list && list[i]; i++)
        look_at_device(&d->verbs, list[i], &best);
    if (best.device)
        rc = open_port(d, &best);
    else if (best.devices == 0)
        rc = err_set(MPI_ERR_OTHER, "%s knows no InfiniBand or RoCE device", path);
    else
        rc = nothing_usable(path, &best);
    if (list)
        d->verbs.free_device_list(list);
    if (rc != 0)
        ib_device_close(d);
    return rc;
}

/* softib must know the job's nodes before its library is loaded. */
static int try_softib(struct ib_device *d, const char *path, struct boot *boot, bool asked_for)
{
    int rc = boot_softib(boot, asked_for);
    return rc ? rc : try_library(d, path);
}

int ib_device_open(struct ib_device *d, struct boot *boot, bool real)
{
    const char *choice = *verbs_choice.text ? verbs_choice.text : "auto";
    char softib[512];
    *d = (struct ib_device){0};
    verbs_softib_path(softib, sizeof(softib));
    if (strcmp(choice, "softib") == 0)
        return *softib ? try_softib(d, softib, boot, true)
                       : err_set(MPI_ERR_OTHER,
                                 "FISHPLATE_VERBS=softib, but softib's libibverbs.so.1 was not found "
                                 "beside the MPI library: was it built (libibverbs-dev)?");
    if (strchr(choice, '/'))
        return try_library(d, choice);
    if (strcmp(choice, "auto") != 0 && strcmp(choice, "system") != 0)
        return err_set(MPI_ERR_ARG,
                       "FISHPLATE_VERBS=%s is none of auto, system, softib or a path with a slash", choice);
    int rc = try_library(d, "libibverbs.so.1");
    if (rc == 0 || strcmp(choice, "system") == 0 || !*softib || real)
        return rc;
    log_debug("%s; softib is the InfiniBand adapter", err_detail(rc));
    return try_softib(d, softib, boot, false);
}

void ib_device_close(struct ib_device *d)
{
    if (d->pd)
        d->verbs.dealloc_pd(d->pd);
    if (d->context)
        d->verbs.close_device(d->context);
    d->pd = NULL;
    d->context = NULL;
    verbs_unload(&d->verbs);
}

/* The provider knows best. Those of Mellanox adapters of old do not say, but keep the order, as softib does.
 */
void ib_device_ask_order(struct ib_device *d, struct ibv_qp *qp)
{
    if (!d->ask_last_byte)
        return;
    d->ask_last_byte = false;
    bool known = d->verbs.softib || (d->attr.vendor_id == 0x02c9 && !d->address.ethernet);
    d->last_byte_last = known || (d->verbs.query_qp_data_in_order &&
                                  d->verbs.query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0) > 0);
}

void ib_device_route(const struct ib_device *d, const struct ib_address *to, struct ibv_ah_attr *out)
{
    *out = (struct ibv_ah_attr){.dlid = to->lid, .sl = (uint8_t)service_level.value, .port_num = d->port};
    bool global =
        to->ethernet || to->subnet != d->address.subnet || (d->port_attr.flags & IBV_QPF_GRH_REQUIRED);
    if (!global)
        return;
    out->is_global = 1;
    memcpy(out->grh.dgid.raw, to->gid, sizeof(to->gid));
    out->grh.sgid_index = d->gid_index;
    out->grh.hop_limit = 64;
}
