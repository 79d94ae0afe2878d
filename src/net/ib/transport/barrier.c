/* barrier.c: barriers that the network performs, if the verbs library offers them: in softib's switch, and by
 * a barrier network's device [Hoefler05 3.1, 3.2].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include "net/ib/rails/rails.h"
#include "net/ib/transport/ib_transport.h"

static const struct ib_barrier *barrier_of(const struct transport_barrier *b)
{
    return container_of(b, struct ib_barrier, base);
}

static int barrier_get_group(const struct transport_barrier *base, uint32_t *group)
{
    const struct ib_barrier *b = barrier_of(base);
    const int rc = b->wires ? b->verbs->wires.take(b->wires, group) : b->verbs->barrier.get_id(group);
    return rc == 0 ? 0 : ERR_AGAIN;
}

static void barrier_free_group(const struct transport_barrier *base, uint32_t group)
{
    const struct ib_barrier *b = barrier_of(base);
    if (b->wires)
        b->verbs->wires.give_back(b->wires, group);
    else
        b->verbs->barrier.free(group);
}

static void *barrier_join(const struct transport_barrier *base, uint32_t group)
{
    const struct ib_barrier *b = barrier_of(base);
    return b->wires ? b->verbs->wires.plug(b->wires, group) : b->verbs->barrier.join(group);
}

static void barrier_enter(const struct transport_barrier *base, void *member)
{
    const struct ib_barrier *b = barrier_of(base);
    (b->wires ? b->verbs->wires.enter : b->verbs->barrier.enter)(member);
}

static bool barrier_is_over(const struct transport_barrier *base, void *member)
{
    const struct ib_barrier *b = barrier_of(base);
    return (b->wires ? b->verbs->wires.test : b->verbs->barrier.test)(member) != 0;
}

static void barrier_leave(const struct transport_barrier *base, void *member)
{
    const struct ib_barrier *b = barrier_of(base);
    (b->wires ? b->verbs->wires.unplug : b->verbs->barrier.leave)(member);
}

static const struct transport_barrier *barrier_open(struct ib_barrier *b, const struct verbs *verbs,
                                                    struct ibv_context *wires)
{
    *b = (struct ib_barrier){.base = {.get = barrier_get_group,
                                      .give_back = barrier_free_group,
                                      .join = barrier_join,
                                      .enter = barrier_enter,
                                      .over = barrier_is_over,
                                      .leave = barrier_leave},
                             .verbs = verbs,
                             .wires = wires};
    return &b->base;
}

/* Opens the first permitted device of a barrier network. */
static void open_wires(struct ib *ib)
{
    const struct ib_survey *s = &ib->device.survey;
    for (uint32_t i = 0; i < s->count && !ib->base.wires; i++) {
        struct net_port *p = &s->ports[i];
        if (p->link != NET_WIRES || p->place < 0)
            continue;
        struct ibv_context *context = ib_device_open_named(&ib->device.verbs, p->device);
        if (context)
            ib->base.wires = barrier_open(&ib->wires, &ib->device.verbs, context);
        p->chosen = context != NULL;
        snprintf(p->why, sizeof(p->why), "%s",
                 p->chosen ? "it is there for barriers of MPI_COMM_WORLD" : "it could not be opened");
    }
}

void ib_barriers_open(struct ib *ib)
{
    open_wires(ib);
    if (ib->device.verbs.barrier.get_id)
        ib->base.barrier = barrier_open(&ib->barrier, &ib->device.verbs, NULL);
}

void ib_barriers_close(struct ib *ib)
{
    if (ib->wires.wires)
        ib->device.verbs.close_device(ib->wires.wires);
    ib->wires.wires = NULL;
}
