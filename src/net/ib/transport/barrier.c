/* barrier.c: barriers that the fabric performs, where the verbs library offers them: in softib's switch, and by a device that
 * has the wires of a barrier network [Hoefler05 3.1, 3.2].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/failover/failover.h"
#include "net/ib/multicast/multicast.h"
#include "net/ib/rails/rails.h"
#include "net/ib/rendezvous/rendezvous.h"
#include "net/ib/transport/transport.h"

static const struct verbs_barrier *barrier_verbs(const struct transport_barrier *b)
{
    return container_of(b, struct ib_barrier, base)->verbs;
}

static int barrier_get_group(const struct transport_barrier *b, uint32_t *group)
{
    return barrier_verbs(b)->get_id(group) == 0 ? 0 : ERR_AGAIN;
}

static void barrier_free_group(const struct transport_barrier *b, uint32_t group)
{
    barrier_verbs(b)->free(group);
}

static void *barrier_join(const struct transport_barrier *b, uint32_t group)
{
    return barrier_verbs(b)->join(group);
}

static void barrier_enter(const struct transport_barrier *b, void *member)
{
    barrier_verbs(b)->enter(member);
}

static bool barrier_is_over(const struct transport_barrier *b, void *member)
{
    return barrier_verbs(b)->test(member) != 0;
}

static void barrier_leave(const struct transport_barrier *b, void *member)
{
    barrier_verbs(b)->leave(member);
}

/* ---- wires ---- */

static const struct ib_wires *wires_from_base(const struct transport_barrier *b)
{
    return container_of(b, struct ib_wires, base);
}

static int wires_get(const struct transport_barrier *b, uint32_t *group)
{
    const struct ib_wires *w = wires_from_base(b);
    return w->verbs->take(w->context, group) == 0 ? 0 : ERR_AGAIN;
}

static void wires_free_group(const struct transport_barrier *b, uint32_t group)
{
    wires_from_base(b)->verbs->give_back(wires_from_base(b)->context, group);
}

static void *wires_join(const struct transport_barrier *b, uint32_t group)
{
    return wires_from_base(b)->verbs->plug(wires_from_base(b)->context, group);
}

static void wires_enter(const struct transport_barrier *b, void *member)
{
    wires_from_base(b)->verbs->enter(member);
}

static bool wires_is_over(const struct transport_barrier *b, void *member)
{
    return wires_from_base(b)->verbs->test(member) != 0;
}

static void wires_leave(const struct transport_barrier *b, void *member)
{
    wires_from_base(b)->verbs->unplug(member);
}

/* Opens the device that the survey found to have a barrier network. */
static void open_wires(struct ib *ib)
{
    const struct ib_survey *s = &ib->device.survey;
    for (uint32_t i = 0; i < s->count && !ib->wires.context; i++) {
        struct net_port *p = &s->ports[i];
        if (p->link != NET_WIRES || p->place < 0)
            continue;
        ib->wires = (struct ib_wires){.base = {.get = wires_get,
                                               .give_back = wires_free_group,
                                               .join = wires_join,
                                               .enter = wires_enter,
                                               .over = wires_is_over,
                                               .leave = wires_leave},
                                      .verbs = &ib->device.verbs.wires,
                                      .context = ib_device_open_named(&ib->device.verbs, p->device)};
        p->chosen = ib->wires.context != NULL;
        snprintf(p->why, sizeof(p->why), "%s",
                 p->chosen ? "it is there for barriers of MPI_COMM_WORLD" : "it could not be opened");
    }
    ib->base.wires = ib->wires.context ? &ib->wires.base : NULL;
}

void ib_barriers_open(struct ib *ib)
{
    const struct verbs_barrier *verbs = &ib->device.verbs.barrier;
    open_wires(ib);
    if (!verbs->get_id)
        return;
    ib->barrier = (struct ib_barrier){.base = {.get = barrier_get_group,
                                               .give_back = barrier_free_group,
                                               .join = barrier_join,
                                               .enter = barrier_enter,
                                               .over = barrier_is_over,
                                               .leave = barrier_leave},
                                      .verbs = verbs};
    ib->base.barrier = &ib->barrier.base;
}

void ib_barriers_close(struct ib *ib)
{
    if (ib->wires.context)
        ib->device.verbs.close_device(ib->wires.context);
    ib->wires.context = NULL;
}
