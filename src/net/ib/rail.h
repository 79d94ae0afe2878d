/* rail.h: the rails of this process: the ports it uses, each a way to every peer that has a port on the same network
 * [Liu04 8.1]. Rail 0 is the home of the process: it carries the connections, their frames and rings. Large transfers
 * are striped over all rails (stripe.c). An adapter is opened once, though several of its ports or paths are rails; it has
 * one completion queue, and memory is registered once with each.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_RAIL_H
#define FP_NET_IB_RAIL_H

#include <stdatomic.h>

#include "net/ib/device.h"

struct boot;
struct counter;
struct ib;

struct ib_adapter {
    struct ib_device *device; /* a port of it: for the context and the protection domain */
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    int cq_size, cq_used;
    uint32_t
        under_way; /* stripes that will report here; polled only while there are some, but for the home's */
    uint8_t index; /* place of its keys in a net_key */
    _Atomic int gone; /* it was taken out: nothing of it works any more */
};

static inline bool ib_adapter_gone(const struct ib_adapter *a)
{
    return atomic_load_explicit(&a->gone, memory_order_relaxed) != 0;
}

/* So many more connections on the adapter: it is polled while there are some. */
void ib_adapter_watch(struct ib_adapter *a, struct ib *ib, int n);

struct ib_rail {
    struct ib_device *device;
    struct ib_adapter *adapter;
    struct counter *bytes, *stripes, *frames;
    double weight;         /* of weighted striping */
    uint8_t index;         /* 0: home */
    bool waiting;          /* its port has not been up yet, and its address may not be known */
    _Atomic uint64_t down; /* when the port went down, in ns; 0: it is up */
};

static inline bool ib_rail_up(const struct ib_rail *r)
{
    return atomic_load(&r->down) == 0;
}

/* Opens the ports beside ib->device, which is open, and one completion queue for each adapter. */
int ib_rails_open(struct ib *ib, struct boot *boot);
void ib_rails_look(struct ib *ib);  /* has a port come up that was down at the start? */
void ib_rails_close(struct ib *ib); /* completion queues */
void ib_rails_free(struct ib *ib);  /* and, when nothing is left on them, the ports */

/* The completion queue must hold whatever can complete at once: it grows with the connections. */
int ib_adapter_room(struct ib_adapter *a, int more);

/* How many rails lead to a peer with this address; one: nothing is ever striped, and order holds. */
bool ib_rails_several(const struct ib *ib, const struct ib_address *peer);

#endif
