/* device.c: loads a verbs library, takes part in the job's choice of a network (network.h) and opens the port
 * of this process on that network. If no node has an active port, softib is used.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "net/ib/device/network.h"

static TUNABLE_STRING(verbs_choice, "VERBS",
                      "Which verbs library is used for InfiniBand and RoCE: auto (the system's where it has "
                      "an active port, else softib), system, softib, or the path of a libibverbs.so.1.");
static TUNABLE_INT(pkey_choice, "IB_PKEY_INDEX", 0, 0, 127,
                   "Entry of the port's partition key table to use.");
static TUNABLE_INT(service_level, "IB_SERVICE_LEVEL", 0, 0, 15, "InfiniBand service level of connections.");
static LABORATORY_CHOICE(
    last_byte, "IB_LAST_BYTE", 0, "auto|yes|no",
    "Whether the adapter writes the last byte of an RDMA write last, so that the receiver "
    "can wait for that byte in memory. auto queries the adapter.");

struct ibv_context *ib_device_open_named(const struct verbs *v, const char *name)
{
    struct ibv_context *context = NULL;
    struct ibv_device **list = v->get_device_list(NULL);
    for (int i = 0; list && list[i] && !context; i++)
        if (strcmp(v->get_device_name(list[i]), name) == 0)
            context = v->open_device(list[i]);
    if (list)
        v->free_device_list(list);
    return context;
}

static int open_port(struct ib_device *d, struct net_port *p)
{
    const struct verbs *v = &d->verbs;
    net_port_name(p, d->name, sizeof(d->name));
    if (!d->borrowed)
        d->context = ib_device_open_named(v, p->device);
    if (!d->context)
        return err_set(MPI_ERR_OTHER, "InfiniBand device %s cannot be opened", d->name);
    d->port = p->port;
    if (!d->borrowed)
        d->pd = v->alloc_pd(d->context);
    if (!d->pd || v->query_device(d->context, &d->attr) != 0 ||
        ib_query_port(v, d->context, d->port, &d->port_attr) != 0)
        return err_set(MPI_ERR_OTHER, "InfiniBand device %s cannot be queried", d->name);
    if (p->gid_index < 0)
        return err_set(MPI_ERR_OTHER, "%s has no GID at the index in FISHPLATE_IB_GID_INDEX", d->name);
    d->address = (struct ib_address){.lid = (uint16_t)(d->port_attr.lid + d->path),
                                     .rails = 1,
                                     .mtu = (uint8_t)d->port_attr.active_mtu,
                                     .ethernet = p->link == NET_ROCE,
                                     .subnet = p->link == NET_ROCE ? 0 : p->subnet};
    memcpy(d->address.gid, p->gid, sizeof(p->gid));
    d->gid_index = (uint8_t)p->gid_index;
    d->pkey_index = (uint16_t)pkey_choice.value;
    d->query_last_byte = last_byte.value == 0;
    d->last_byte_last = last_byte.value == 1;
    d->used = p;
    return 0;
}

/* Reports why none of the devices can be used. */
static int report_no_usable_device(const char *path, const struct ib_device *d)
{
    const struct ib_survey *s = &d->survey;
    uint32_t unwanted = 0;
    for (uint32_t i = 0; i < s->count; i++)
        unwanted += s->ports[i].place < 0;
    uint32_t inactive = s->count - unwanted;
    const char *list = ib_survey_device_list();
    if (s->devices == 0)
        return err_set(MPI_ERR_OTHER, "%s finds no InfiniBand or RoCE device%s", path,
                       d->verbs.softib ? "; softib printed the reason above" : "");
    if (inactive == 0 && unwanted > 0)
        return err_set(MPI_ERR_OTHER,
                       "FISHPLATE_IB_DEVICES=%s names none of the ports that %s knows (fishplate info "
                       "--devices lists them)",
                       list, path);
    return err_set(MPI_ERR_OTHER, "%s knows %u device%s, but none of the %u port%s %s is active", path,
                   s->devices, s->devices == 1 ? "" : "s", inactive, inactive == 1 ? "" : "s",
                   *list ? "that FISHPLATE_IB_DEVICES allows" : "there");
}

/* Loads the library and checks its ports. Returns an error if none of them can be used. */
static int device_probe_library(struct ib_device *d, const char *path)
{
    int rc = verbs_load(path, &d->verbs);
    if (rc != 0)
        return rc;
    d->verbs.fork_init(); /* must precede the first registration; an error is harmless */
    rc = ib_survey(&d->verbs, &d->survey);
    for (uint32_t i = 0; i < d->survey.count && rc == 0; i++)
        if (choose_usable(&d->survey.ports[i]))
            return 0;
    return rc ? rc : report_no_usable_device(path, d);
}

static int open_on_network(struct ib_device *d, const struct choose_network *network, uint32_t process)
{
    int i = choose_port(d->survey.ports, d->survey.count, network, process);
    if (i < 0)
        return err_set(
            MPI_ERR_OTHER,
            "the other ranks of this node have a port that this rank cannot see; fishplate info --devices "
            "shows the ports of a rank");
    return open_port(d, &d->survey.ports[i]);
}

/* Opens softib. ib_network_agree has described the job's nodes to it. All its ports are on one fabric. */
static int open_softib(struct ib_device *d, const char *path, uint32_t process)
{
    struct choose_network network;
    uint32_t node;
    int rc = device_probe_library(d, path);
    if (rc != 0)
        return rc;
    choose_network(&(struct choose_node){d->survey.ports, d->survey.count}, 1, &network, &node);
    return open_on_network(d, &network, process);
}

/* Derives the path of the library to load from FISHPLATE_VERBS. *only: use no other library. */
static int select_verbs_library(const char *softib, const char **path, bool *only)
{
    const char *choice = *verbs_choice.text ? verbs_choice.text : "auto";
    *path = "libibverbs.so.1";
    *only = strcmp(choice, "auto") != 0;
    if (strcmp(choice, "softib") == 0) {
        *path = softib;
        return *softib ? 0
                       : err_set(MPI_ERR_OTHER,
                                 "FISHPLATE_VERBS=softib, but softib's libibverbs.so.1 was not found "
                                 "beside the MPI library; building it needs the package libibverbs-dev");
    }
    if (strchr(choice, '/'))
        *path = choice;
    else if (*only && strcmp(choice, "system") != 0)
        return err_set(MPI_ERR_ARG,
                       "FISHPLATE_VERBS=%s is none of auto, system, softib or a path with a slash", choice);
    return 0;
}

static int open_agreed_device(struct ib_device *d, struct boot *boot, bool real)
{
    char softib[512], why[400] = "";
    const char *path;
    bool only;
    enum ib_agreed agreed;
    struct choose_network network;
    verbs_softib_path(softib, sizeof(softib));
    int rc = select_verbs_library(softib, &path, &only);
    if (rc != 0)
        return rc;
    bool softib_requested = path == softib;
    rc = softib_requested ? 0 : device_probe_library(d, path);
    if (rc != 0)
        snprintf(why, sizeof(why), "%s", err_detail(rc));
    struct ib_offer mine = {.ports = d->survey.ports,
                            .count = d->survey.count,
                            .softib = softib_requested,
                            .fallback = !only && *softib && !real};
    rc = ib_network_agree(boot, &mine, why, &agreed, &network);
    if (rc != 0)
        return rc;
    if (agreed == IB_AGREED_PORTS)
        return open_on_network(d, &network, boot->local_rank);
    if (agreed == IB_AGREED_SOFTIB)
        return open_softib(d, softib, boot->local_rank);
    if (!mine.fallback)
        return err_set(MPI_ERR_OTHER, "%s", why);
    if (boot->local_rank == 0)
        log_info("%s; softib, a software adapter, is used between nodes", why);
    ib_device_close(d);
    return open_softib(d, softib, boot->local_rank);
}

static void report_unknown_names(const struct ib_survey *s)
{
    size_t len;
    const char *unknown = ib_survey_unknown_name(s, &len);
    if (unknown)
        log_warn("FISHPLATE_IB_DEVICES names %.*s, which is not there; fishplate info --devices shows the "
                 "ports of this node",
                 (int)len, unknown);
}

int ib_device_open(struct ib_device *d, struct boot *boot, bool real)
{
    *d = (struct ib_device){0};
    int rc = open_agreed_device(d, boot, real);
    if (rc == 0 && boot->local_rank == 0)
        report_unknown_names(&d->survey);
    if (rc != 0)
        ib_device_close(d);
    return rc;
}

void ib_device_check_names(void)
{
    struct ib_survey s = {0};
    if (!ib_survey_names_are_typed())
        return;
    const int rc = ib_device_list(&s);
    if (rc == 0)
        report_unknown_names(&s);
    else
        log_warn("FISHPLATE_IB_DEVICES=%s names no port: %s", ib_survey_device_list(), err_detail(rc));
    free(s.ports);
}

int ib_device_list(struct ib_survey *out)
{
    struct ib_device d = {0};
    struct choose_network network;
    char softib[512];
    const char *path;
    bool only;
    uint32_t node;
    verbs_softib_path(softib, sizeof(softib));
    int rc = select_verbs_library(softib, &path, &only);
    rc = rc ? rc : device_probe_library(&d, path);
    struct choose_node here = {d.survey.ports, d.survey.count};
    if (rc == 0 && choose_network(&here, 1, &network, &node) == CHOOSE_FOUND) {
        uint32_t more[IB_RAILS_MAX];
        int home = choose_port(d.survey.ports, d.survey.count, &network, 0);
        if (home >= 0)
            choose_rails(d.survey.ports, d.survey.count, (uint32_t)home, IB_ADAPTERS_MAX, IB_RAILS_MAX - 1,
                         more);
    } else
        choose_explain_unusable(d.survey.ports, d.survey.count);
    if (d.survey.count > 0)
        rc = 0;
    *out = d.survey;
    d.survey = (struct ib_survey){0};
    ib_device_close(&d);
    return rc;
}

int ib_device_open_port(const struct ib_device *home, const struct ib_device *beside, struct net_port *port,
                        uint8_t path, struct ib_device *out)
{
    *out = (struct ib_device){.verbs = home->verbs, .path = path};
    out->verbs.library = NULL; /* the library is closed with `home` */
    if (beside) {
        out->borrowed = true;
        out->context = beside->context;
        out->pd = beside->pd;
    }
    int rc = open_port(out, port);
    if (rc != 0)
        ib_device_close(out);
    return rc;
}

/* Reads the port's address again. False: the port is now on another network than that by which peers pair
 * rails. */
bool ib_device_refresh(struct ib_device *d, const struct ibv_port_attr *attr)
{
    struct net_port now = *d->used;
    ib_survey_port(&d->verbs, d->context, attr, &now);
    if (now.link != d->used->link || now.subnet != d->used->subnet || now.gid_index < 0)
        return false;
    *d->used = now;
    d->used->chosen = true;
    snprintf(d->used->why, sizeof(d->used->why), "a further rail: it came up while the job ran");
    d->port_attr = *attr;
    d->gid_index = (uint8_t)now.gid_index;
    d->address.lid = (uint16_t)(attr->lid + d->path);
    d->address.mtu = (uint8_t)attr->active_mtu;
    memcpy(d->address.gid, now.gid, sizeof(now.gid));
    return true;
}

void ib_device_close(struct ib_device *d)
{
    if (d->pd && !d->borrowed)
        d->verbs.dealloc_pd(d->pd);
    if (d->context && !d->borrowed)
        d->verbs.close_device(d->context);
    d->pd = NULL;
    d->context = NULL;
    free(d->survey.ports);
    d->survey = (struct ib_survey){0};
    d->used = NULL;
    verbs_unload(&d->verbs);
}

/* Queries the provider whether RDMA data appears in order. softib and providers of old Mellanox InfiniBand
 * adapters preserve the order but cannot report it. */
void ib_device_query_order(struct ib_device *d, struct ibv_qp *qp)
{
    if (!d->query_last_byte)
        return;
    d->query_last_byte = false;
    bool known = d->verbs.softib || (d->attr.vendor_id == 0x02c9 && !d->address.ethernet);
    d->last_byte_last = known || (d->verbs.query_qp_data_in_order &&
                                  d->verbs.query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0) > 0);
}

void ib_device_fill_route(const struct ib_device *d, const struct ib_address *to, struct ibv_ah_attr *out)
{
    *out = (struct ibv_ah_attr){
        .dlid = to->lid, .sl = (uint8_t)service_level.value, .src_path_bits = d->path, .port_num = d->port};
    bool global =
        to->ethernet || to->subnet != d->address.subnet || (d->port_attr.flags & IBV_QPF_GRH_REQUIRED);
    if (!global)
        return;
    out->is_global = 1;
    memcpy(out->grh.dgid.raw, to->gid, sizeof(to->gid));
    out->grh.sgid_index = d->gid_index;
    out->grh.hop_limit = 64;
}
