/* rendezvous_map.c: MAPGET, MAPPUT: large messages of GPU memory on one node. One process maps the GPU memory
 * of the other one, and a GPU copies from it or into it. MAPGET if the sender's memory can be mapped, MAPPUT
 * if only the receiver's memory can.
 *
 *     sender                         receiver             sender                         receiver
 *       RTS (struct gpu_export) -------> match              RTS ---------------------------> match
 *       <=========================  GPU copies              <--- CTS_WRITE (struct gpu_export)
 *       <--------------------------- FIN                    GPU copies ==================>
 *     complete                                              WRITTEN -----------------------> complete
 *
 * Data in memory that cannot be mapped is sent in pieces (R3).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/rendezvous_map.h"

#include <string.h>

#include "base/tunable.h"
#include "gpu/gpu_move.h"
#include "net/net.h"
#include "p2p/device_staging.h"
#include "p2p/protocol.h"

static LABORATORY_SIZE(
    map_min, "GPU_MAP_MIN", 512 * 1024, 0, INT64_MAX,
    "Smallest message between GPU memory of two processes of a node that one GPU copies directly. Smaller "
    "ones move through host memory, since two processes that take turns on the compute engine of a GPU wait "
    "for each other. With MPS they do not, and all messages that are announced are copied directly.");

static COUNTER(mapgets, "p2p_rendezvous_mapget",
               "Large messages that a GPU copied from the sender's memory, which the receiver had mapped.");
static COUNTER(mapputs, "p2p_rendezvous_mapput",
               "Large messages that a GPU copied into the receiver's memory, which the sender had mapped.");
static COUNTER(
    refusals, "p2p_rendezvous_map_refused",
    "Large messages of GPU memory that went in pieces because the other process could not map the memory.");

/* A copy in progress. */
struct map_copy {
    struct list link; /* p->copies */
    struct p2p_request *r;
    struct gpu_move move;
    void *mapped; /* mapped memory of the peer; NULL: memory of this process */
    void (*end)(struct p2p_request *r, int status);
};

/* ---- copies ---- */

static int progress_copies(struct net_hook *hook)
{
    struct p2p *p = container_of(hook, struct p2p, copy_hook);
    int events = 0;
    list_foreach_safe(pos, after, &p->copies)
    {
        struct map_copy *c = list_entry(pos, struct map_copy, link);
        const size_t before = c->move.finished;
        const int rc = gpu_move_poll(&c->move);
        events += c->move.finished != before;
        if (rc == ERR_AGAIN)
            continue;
        list_remove(&c->link);
        if (list_empty(&p->copies)) {
            list_remove(&p->copy_hook.link);
            p->net->unrung--;
        }
        if (c->mapped)
            gpu_release_import(c->mapped);
        c->end(c->r, rc);
        pool_put(&p->copy_pool, c);
    }
    return events;
}

/* Copies between the request's data and exported memory of the peer. ERR_AGAIN: the memory cannot be mapped;
 * no copy was started. */
static int copy_start(struct p2p_request *r, const struct gpu_export *exported, uint64_t address,
                      uint64_t bytes, bool in, void (*end)(struct p2p_request *r, int status))
{
    struct p2p *p = r->base.p2p;
    void *mapped = NULL;
    const uint64_t offset = address - exported->start;
    if (!p->copy_hook.progress) {
        pool_init(&p->copy_pool, sizeof(struct map_copy), 16);
        list_init(&p->copies);
        p->copy_hook.progress = progress_copies;
    }
    const int outside = r->device ? gpu_check_buffer(r->buf, bytes) : 0;
    if (outside)
        return outside;
    if (!r->peer->self && gpu_import_range(exported, &mapped) != 0)
        return ERR_AGAIN;
    struct map_copy *c = pool_get(&p->copy_pool);
    int rc = c ? 0 : err_set(MPI_ERR_NO_MEM, "out of memory for a copy of GPU memory");
    char *there = mapped ? (char *)mapped + offset : (char *)(uintptr_t)address;
    if (rc == 0)
        rc = gpu_move_start(&c->move, in ? r->buf : there, in ? there : r->buf, bytes);
    if (rc != 0) {
        if (mapped)
            gpu_release_import(mapped);
        if (c)
            pool_put(&p->copy_pool, c);
        return rc;
    }
    c->r = r;
    c->mapped = mapped;
    c->end = end;
    if (list_empty(&p->copies)) {
        list_append(&p->net->hooks, &p->copy_hook.link);
        p->net->unrung++; /* no doorbell rings when a GPU has finished */
    }
    list_append(&p->copies, &c->link);
    return 0;
}

/* Checks numbers that were received: the message must lie within the exported allocation. */
static bool is_inside_export(const struct gpu_export *exported, uint64_t address, uint64_t bytes)
{
    return address >= exported->start && address - exported->start <= exported->size &&
           bytes <= exported->size - (address - exported->start);
}

/* Exports the first `bytes` bytes of the data. False: they are not in one allocation that other processes can
 * map. */
static bool export_data(struct p2p_request *r, uint64_t bytes, struct gpu_export *out)
{
    struct gpu_range range;
    memset(out, 0, sizeof(*out));
    if (gpu_find_range(r->buf, &range) != 0 || bytes > range.size - ((uintptr_t)r->buf - range.start))
        return false;
    if (gpu_synchronize_copies(r->buf) != 0)
        return false;
    if (r->peer->self) { /* a message to self needs no handle */
        out->start = range.start;
        out->size = range.size;
        return true;
    }
    if ((range.by_descriptor && !device_can_store_descriptor(r)) || gpu_export_range(&range, out) != 0)
        return false;
    return out->fd < 0 || device_store_descriptor(r, out->fd);
}

/* ---- both announce what is possible ---- */

static bool is_on_same_node(const struct peer *peer)
{
    return peer->self || peer->caps.cpu_moves;
}

/* True if both buffers are GPU memory and the message is too short for a mapping to be faster. */
static bool is_too_short_to_map(const struct p2p_request *r, uint64_t bytes)
{
    return r->device && bytes < (uint64_t)map_min.value && gpu_serializes_kernels() && !protocol_forces_map();
}

uint64_t map_announce(struct p2p_request *r, struct gpu_export *out)
{
    if (!r->block || !gpu_may_have_memory() || !is_on_same_node(r->peer))
        return 0;
    return (is_too_short_to_map(r, r->length) ? 0 : RTS_MAPPUT) |
           (r->device && export_data(r, r->length, out) ? RTS_MAPGET : 0);
}

bool mapget_is_possible(const struct p2p_request *r, const struct announcement *a)
{
    return a->map && r->block && gpu_is_active() && !is_too_short_to_map(r, (uint64_t)r->base.bytes);
}

bool mapput_is_possible(const struct p2p_request *r, const struct announcement *a)
{
    return a->rts->can & RTS_MAPPUT && r->block && r->device;
}

/* ---- MAPGET ---- */

static void mapget_end(struct p2p_request *r, int status)
{
    rendezvous_end_receive(r, status, true);
}

void mapget_start(struct p2p *p, struct p2p_request *r, const struct announcement *a, uint64_t bytes)
{
    CHECK(is_inside_export(a->map, a->rts->address, bytes), "a message lies outside of its exported memory");
    const int rc = copy_start(r, a->map, a->rts->address, bytes, true, mapget_end);
    if (rc == ERR_AGAIN) {
        counter_add(&refusals, 1);
        protocol_fall_back(p, r, bytes);
    } else if (rc != 0) {
        rendezvous_end_receive(r, rc, true);
    } else {
        counter_add(&mapgets, 1);
        request_change_state(r, STATE_RECV_READ);
    }
}

/* ---- MAPPUT ---- */

void mapput_start(struct p2p *p, struct p2p_request *r, uint64_t bytes)
{
    struct mapput answer = {.to = {.cts.bytes = bytes, .address = (uintptr_t)r->buf}};
    if (!export_data(r, bytes, &answer.map)) {
        protocol_fall_back(p, r, bytes);
        return;
    }
    if (!request_publish(r)) {
        rendezvous_end_receive(r, err_set(MPI_ERR_NO_MEM, "out of memory for a large receive"), true);
        return;
    }
    answer.to.cts.cookie = r->cookie;
    request_change_state(r, STATE_RECV_RPUT);
    struct frame_header header = {.kind = FRAME_CTS_WRITE, .flags = CTS_MAP, .word = r->peer_cookie};
    control_send(p, r->peer, &header, &answer, sizeof(answer));
}

static void mapput_end(struct p2p_request *r, int status)
{
    struct frame_header h = {.kind = FRAME_WRITTEN, .aux = (uint16_t)status, .word = r->peer_cookie};
    control_send_first(r->base.p2p, r->peer, &h, &r->write.bytes, sizeof(r->write.bytes));
    request_end(r, status);
}

void mapput_requested(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                      size_t len)
{
    struct mapput answer;
    CHECK(len == sizeof(answer), "an answer to an announcement has the wrong length");
    memcpy(&answer, payload, sizeof(answer));
    const uint64_t bytes = answer.to.cts.bytes, address = answer.to.address;
    struct p2p_request *r = request_find_by_cookie(p, from, h->word, STATE_BIT(SEND_ANNOUNCED));
    CHECK(r && r->block && gpu_may_have_memory() && bytes > 0 && bytes <= r->length &&
              is_inside_export(&answer.map, address, bytes),
          "an answer arrived to an announcement that was not made");
    request_unpublish(r);
    request_unregister(r);
    r->peer_cookie = answer.to.cts.cookie;
    r->write.bytes = bytes; /* less than the message if the receive is shorter */
    const int rc = copy_start(r, &answer.map, address, bytes, false, mapput_end);
    if (rc == ERR_AGAIN) {
        counter_add(&refusals, 1);
        r3_send_rest(r, r->peer_cookie, 0, bytes);
        return;
    }
    request_change_state(r, STATE_SEND_RPUT);
    if (rc == 0)
        counter_add(&mapputs, 1);
    else
        mapput_end(r, rc);
}

void maps_close(struct p2p *p)
{
    if (!p->copy_hook.progress)
        return;
    while (!list_empty(&p->copies))
        progress_copies(&p->copy_hook);
    pool_destroy(&p->copy_pool);
}
