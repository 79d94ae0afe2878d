/* rail.c: opens the rails of this process, and the completion queue of each adapter.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/device/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "net/ib/ib.h"
#include "net/ib/policy/choose.h"

static TUNABLE_STRING(weights, "IB_WEIGHTS",
                      "Relative share of each rail in a large message when FISHPLATE_IB_STRIPE=weighted: "
                      "positive numbers separated by commas, for example 4,1, in the order in which "
                      "fishplate info --devices lists the ports in use. Unset: the link rates of the ports.");
static TUNABLE_INT(paths, "IB_PATHS", 1, 1, 8,
                   "Number of paths through the fabric to use for each port. More than one needs a port with "
                   "several LIDs (LID mask count, LMC, above 0). Each path is a separate rail.");

#define FIRST_CQ 1024

#define RAIL_COUNTERS(n)                                                          \
    static COUNTER(rail##n##_bytes, "ib_rail" #n "_bytes",                        \
                   "Bytes moved in stripes and spread frames over rail " #n "."); \
    static COUNTER(rail##n##_stripes, "ib_rail" #n "_stripes",                    \
                   "Stripes of large messages sent over rail " #n ".");           \
    static COUNTER(rail##n##_frames, "ib_rail" #n "_frames",                      \
                   "Frames sent over rail " #n " where FISHPLATE_LAB=IB_MESSAGES spreads them.")
RAIL_COUNTERS(0);
RAIL_COUNTERS(1);
RAIL_COUNTERS(2);
RAIL_COUNTERS(3);
RAIL_COUNTERS(4);
RAIL_COUNTERS(5);
RAIL_COUNTERS(6);
RAIL_COUNTERS(7);
static struct counter *const rail_bytes[IB_RAILS_MAX] = {&rail0_bytes, &rail1_bytes, &rail2_bytes,
                                                         &rail3_bytes, &rail4_bytes, &rail5_bytes,
                                                         &rail6_bytes, &rail7_bytes};
static struct counter *const rail_stripes[IB_RAILS_MAX] = {&rail0_stripes, &rail1_stripes, &rail2_stripes,
                                                           &rail3_stripes, &rail4_stripes, &rail5_stripes,
                                                           &rail6_stripes, &rail7_stripes};

static struct counter *const rail_frames[IB_RAILS_MAX] = {&rail0_frames, &rail1_frames, &rail2_frames,
                                                          &rail3_frames, &rail4_frames, &rail5_frames,
                                                          &rail6_frames, &rail7_frames};

int ib_adapter_reserve_completions(struct ib_adapter *a, int more)
{
    a->cq_used += more;
    if (a->cq_used <= a->cq_size)
        return 0;
    int size = MIN(2 * a->cq_used, a->device->attr.max_cqe);
    if (size < a->cq_used || a->device->verbs.resize_cq(a->cq, size) != 0) {
        a->cq_used -= more;
        return err_set(MPI_ERR_OTHER,
                       "%s cannot have a completion queue of %d entries: allow fewer connections "
                       "(FISHPLATE_IB_MAX_CONNECTIONS), make them smaller (FISHPLATE_IB_BUFFERS, "
                       "FISHPLATE_LAB=IB_SEND_DEPTH), or share receive queues (FISHPLATE_IB_RECEIVE=shared)",
                       a->device->name, a->cq_used + more);
    }
    a->cq_size = size;
    return 0;
}

void ib_adapter_count_users(struct ib_adapter *a, struct ib *ib, int n)
{
    a->under_way += (uint32_t)n;
    if (a->index > 0)
        ib->elsewhere += (uint32_t)n;
}

static int adapter_open(struct ib *ib, struct ib_device *d, struct ib_adapter **out)
{
    const struct verbs *v = &d->verbs;
    struct ib_adapter *a = &ib->adapters[ib->nadapters];
    *a = (struct ib_adapter){.device = d, .index = (uint8_t)ib->nadapters};
    a->channel = v->create_comp_channel(d->context);
    if (!a->channel)
        return err_set(MPI_ERR_OTHER, "%s: cannot create a completion channel: %s", d->name,
                       err_reason(errno));
    a->cq_size = MIN(ib->lanes > 1 ? 16 * FIRST_CQ : FIRST_CQ, d->attr.max_cqe);
    a->cq = v->create_cq(d->context, a->cq_size, NULL, a->channel, 0);
    if (!a->cq) {
        const int why = errno;
        v->destroy_comp_channel(a->channel);
        return err_set(MPI_ERR_OTHER, "%s: cannot create a completion queue of %d entries: %s", d->name,
                       a->cq_size, err_reason(why));
    }
    ib->nadapters++;
    *out = a;
    return 0;
}

static void rail_add(struct ib *ib, struct ib_device *d, struct ib_adapter *a)
{
    uint32_t n = ib->nrails++;
    struct ib_rail *r = &ib->rails[n];
    r->device = d;
    r->adapter = a;
    r->index = (uint8_t)n;
    r->bytes = rail_bytes[n];
    r->stripes = rail_stripes[n];
    r->frames = rail_frames[n];
    r->weight = MAX(d->used->rate, 1u);
    atomic_init(&r->down, 0);
}

static struct ib_adapter *find_adapter(struct ib *ib, const struct net_port *p)
{
    for (uint32_t i = 0; i < ib->nadapters; i++)
        if (strcmp(ib->adapters[i].device->used->device, p->device) == 0)
            return &ib->adapters[i];
    return NULL;
}

/* Opens a further rail. A rail that cannot be opened is omitted: the primary rail suffices. */
static void open_additional_rail(struct ib *ib, struct net_port *p, uint8_t path)
{
    bool up = choose_usable(p);
    struct ib_adapter *a = find_adapter(ib, p);
    struct ib_device *d = calloc(1, sizeof(*d));
    int rc = d ? ib_device_open_port(&ib->device, a ? a->device : NULL, p, path, d)
               : err_set(MPI_ERR_NO_MEM, "out of memory for a rail");
    if (rc == 0 && !a)
        rc = adapter_open(ib, d, &a);
    if (rc == 0) {
        rail_add(ib, d, a);
        ib->rails[ib->nrails - 1].waiting = !up;
        atomic_store(&ib->rails[ib->nrails - 1].down, up ? 0 : clock_ns());
        return;
    }
    log_warn("rail %u cannot be opened and is not used: %s", ib->nrails, err_detail(rc));
    err_clear();
    if (path == 0) { /* otherwise another path of the port is in use */
        p->chosen = false;
        snprintf(p->why, sizeof(p->why), "it could not be opened");
    }
    if (d)
        ib_device_close(d);
    free(d);
}

static void rails_open_paths(struct ib *ib, struct ib_device *d)
{
    int64_t n = d->address.ethernet ? 1 : MIN(paths.value, (int64_t)1 << d->port_attr.lmc);
    for (int64_t k = 1; k < n && ib->nrails < IB_RAILS_MAX; k++)
        open_additional_rail(ib, d->used, (uint8_t)k);
}

/* Reads FISHPLATE_IB_WEIGHTS, whose order is that of the ports in the survey. */
static int read_weights(struct ib *ib)
{
    const char *at = weights.text;
    for (uint32_t i = 0; *at && i < ib->device.survey.count; i++) {
        const struct net_port *p = &ib->device.survey.ports[i];
        char *end;
        if (!p->chosen)
            continue;
        double w = strtod(at, &end);
        if (end == at || !(w > 0) || w > 1e6 || (*end != ',' && *end != ':' && *end != '\0'))
            return err_set(MPI_ERR_ARG,
                           "FISHPLATE_IB_WEIGHTS=%s is not a list of positive numbers, one for each rail, "
                           "separated by commas",
                           weights.text);
        for (uint32_t r = 0; r < ib->nrails; r++)
            if (ib->rails[r].device->used == p)
                ib->rails[r].weight = w;
        at = *end ? end + 1 : end;
        if (!*at)
            return 0;
    }
    return *at ? err_set(MPI_ERR_ARG, "FISHPLATE_IB_WEIGHTS=%s has more weights than there are rails (%u)",
                         weights.text, ib->nrails)
               : 0;
}

/* Explains in the log that XRC uses only one rail: initiators and targets cannot use several. */
static void limit_xrc_to_one_rail(struct ib *ib, const struct boot *boot)
{
    const struct net_port *used = ib->device.used;
    uint32_t unused = 0;
    ib->device.address.rails = 1;
    for (uint32_t i = 0; i < ib->device.survey.count; i++) {
        struct net_port *p = &ib->device.survey.ports[i];
        if (p == used || !choose_usable(p) || p->made != used->made || p->link != used->link)
            continue;
        unused++;
        snprintf(p->why, sizeof(p->why), "FISHPLATE_IB_RECEIVE=xrc uses one port in each process");
    }
    if (unused > 0 && boot->rank == 0)
        log_warn("FISHPLATE_IB_RECEIVE=xrc uses one port in each process: rank 0 uses %s and leaves %u other "
                 "port%s unused. FISHPLATE_IB_RECEIVE=shared uses all ports",
                 ib->device.name, unused, unused == 1 ? "" : "s");
    if (paths.value > 1 && boot->rank == 0)
        log_warn("FISHPLATE_IB_RECEIVE=xrc uses one path of its port: FISHPLATE_IB_PATHS=%lld has no effect",
                 (long long)paths.value);
}

int ib_rails_open(struct ib *ib, struct boot *boot)
{
    struct ib_adapter *a;
    uint32_t more[IB_RAILS_MAX], home = (uint32_t)(ib->device.used - ib->device.survey.ports);
    int rc = adapter_open(ib, &ib->device, &a);
    if (rc != 0)
        return rc;
    rail_add(ib, &ib->device, a);
    if (ib->receive == IB_RECEIVE_XRC) {
        limit_xrc_to_one_rail(ib, boot);
        return read_weights(ib);
    }
    uint32_t n = choose_rails(ib->device.survey.ports, ib->device.survey.count, home, IB_ADAPTERS_MAX,
                              IB_RAILS_MAX - 1, more);
    for (uint32_t i = 0; i < n; i++)
        open_additional_rail(ib, &ib->device.survey.ports[more[i]], 0);
    for (uint32_t i = 0, ports = ib->nrails; i < ports; i++)
        rails_open_paths(ib, ib->rails[i].device);
    uint32_t all = *ib_survey_device_list()
                       ? choose_waiting_ports(ib->device.survey.ports, ib->device.survey.count, home,
                                              IB_ADAPTERS_MAX, IB_RAILS_MAX - 1, n, more)
                       : n;
    for (uint32_t i = n; i < all && ib->nrails < IB_RAILS_MAX; i++)
        open_additional_rail(ib, &ib->device.survey.ports[more[i]], 0);
    for (uint32_t i = 0; i < ib->nrails; i++)
        ib->rails[i].device->address.rails = ib->nrails;
    if (ib->nrails > 1 && boot->rank == 0)
        log_info("large messages are striped over %u rails on %u adapter%s", ib->nrails, ib->nadapters,
                 ib->nadapters == 1 ? "" : "s");
    return read_weights(ib);
}

void ib_rails_check_waiting(struct ib *ib)
{
    for (uint32_t i = 1; i < ib->nrails; i++) {
        struct ib_rail *r = &ib->rails[i];
        struct ibv_port_attr attr;
        if (!r->waiting || ib_adapter_is_gone(r->adapter) ||
            ib_query_port(&ib->device.verbs, r->device->context, r->device->port, &attr) != 0 ||
            attr.state != IBV_PORT_ACTIVE)
            continue;
        r->waiting = false;
        if (!ib_device_refresh(r->device, &attr)) {
            log_warn("%s has come up on another network than it was on before, and is not used",
                     r->device->name);
            continue;
        }
        r->weight = MAX(r->device->used->rate, 1u);
        log_warn("%s has come up; messages use it too", r->device->name);
        atomic_store(&r->down, 0);
        atomic_store(&ib->ports, 1); /* makes poll send the list of ports to the peers */
        atomic_store(&ib->attention, 1);
    }
}

void ib_rails_close(struct ib *ib)
{
    for (uint32_t i = 0; i < ib->nadapters; i++) {
        struct ib_adapter *a = &ib->adapters[i];
        if (a->cq)
            ib->device.verbs.destroy_cq(a->cq);
        if (a->channel)
            ib->device.verbs.destroy_comp_channel(a->channel);
    }
    ib->nadapters = 0;
}

/* Called after everything that was registered or created on the rails was destroyed. Ports that share another
 * port's adapter are freed first. */
void ib_rails_free(struct ib *ib)
{
    for (uint32_t i = ib->nrails; i-- > 1;)
        if (ib->rails[i].device->borrowed) {
            free(ib->rails[i].device);
            ib->rails[i].device = NULL;
        }
    for (uint32_t i = ib->nrails; i-- > 1;)
        if (ib->rails[i].device) {
            ib_device_close(ib->rails[i].device);
            free(ib->rails[i].device);
        }
    ib->nrails = 0;
}

bool ib_has_several_rails(const struct ib *ib, const struct ib_address *peer)
{
    return ib->nrails > 1 || peer->rails > 1;
}

uint32_t ib_rails_list_up(const struct ib *ib)
{
    uint32_t up = 0;
    for (uint32_t i = 0; i < ib->nrails; i++)
        up |= ib_rail_is_up(&ib->rails[i]) ? rail_bit(i) : 0;
    return up;
}

uint32_t ib_rails_describe(const struct ib *ib, struct ib_rail_info *out)
{
    for (uint32_t i = 0; i < ib->nrails; i++) {
        const struct ib_rail *r = &ib->rails[i];
        out[i] = (struct ib_rail_info){.address = r->device->address,
                                       .network = r->device->used->subnet,
                                       .rate = r->device->used->rate,
                                       .adapter = r->adapter->index,
                                       .up = ib_rail_is_up(r),
                                       .rd_atomic = (uint16_t)MIN(r->device->attr.max_qp_rd_atom, 16)};
    }
    return ib->nrails;
}
