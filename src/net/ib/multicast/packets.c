/* packets.c: packets to and from a multicast group. Each group of this process has an unreliable-datagram
 * queue pair, with receive buffers and send slots in one registered mapping.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "net/ib/multicast/ib_multicast.h"
#include "net/ib/ib.h"

#define QKEY  0x11110001u
#define SENT  (UINT64_C(1) << 32) /* bit in the id of a work request: the request sends a slot */
#define STASH 16

struct mcast_member {
    struct ib *ib;
    struct list link; /* ib->multicasts */
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_ah *ah;
    struct ibv_mr *mr;
    struct ib_multicast_group group;
    char *memory; /* receive buffers, then slots */
    size_t stride, size;
    uint32_t receives, slots;
    uint32_t sends, sends_max; /* in the send queue */
    uint16_t *on_way;          /* by slot: number of its requests in the send queue */
    /* Completions that ib_multicast_arm polled before this process slept. */
    struct ibv_wc stash[STASH];
    int stashed, stash_at;
};

static size_t packet_max(struct transport *t)
{
    return (size_t)128 << ib_of(t)->device.port_attr.active_mtu;
}

static char *receive_buffer(const struct mcast_member *m, uint32_t i)
{
    return m->memory + i * m->stride;
}

static void *packet_slot(void *member, uint32_t i)
{
    const struct mcast_member *m = member;
    return m->memory + (m->receives + i) * m->stride;
}

static bool packet_is_busy(void *member, uint32_t i)
{
    const struct mcast_member *m = member;
    return m->on_way[i] != 0;
}

static void repost_receive_buffer(void *member, uint32_t handle)
{
    struct mcast_member *m = member;
    struct ibv_sge piece = {
        .addr = (uintptr_t)receive_buffer(m, handle), .length = (uint32_t)m->stride, .lkey = m->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = handle, .sg_list = &piece, .num_sge = 1}, *bad;
    int rc = ibv_post_recv(m->qp, &wr, &bad);
    if (rc != 0)
        ib_fatal(m->ib, NULL, "cannot post a receive buffer for multicast packets (%s)", err_reason(rc));
}

static int member_map_packets(struct mcast_member *m)
{
    const struct ib_device *d = &m->ib->device;
    m->size = ALIGN_UP((m->receives + m->slots) * m->stride, 4096);
    int fd = memfd_create("fishplate-multicast", MFD_CLOEXEC);
    void *memory = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)m->size) == 0)
        memory = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int why = errno;
    if (fd >= 0)
        close(fd);
    if (memory == MAP_FAILED)
        return err_set(MPI_ERR_NO_MEM, "no memory for %zu bytes of multicast buffers: %s", m->size,
                       err_reason(why));
    m->memory = memory;
    m->mr = d->verbs.reg_mr(d->pd, memory, m->size, IBV_ACCESS_LOCAL_WRITE);
    return m->mr ? 0
                 : err_set(MPI_ERR_NO_MEM, "%s cannot register %zu bytes for multicast buffers (%s)", d->name,
                           m->size, err_reason(errno));
}

static int member_create_queues(struct mcast_member *m)
{
    const struct ib_device *d = &m->ib->device;
    struct ibv_qp_init_attr a = {
        .qp_type = IBV_QPT_UD,
        .cap = {
            .max_send_wr = m->sends_max, .max_recv_wr = m->receives, .max_send_sge = 1, .max_recv_sge = 1}};
    m->cq = d->verbs.create_cq(d->context, (int)(m->sends_max + m->receives), NULL,
                               m->ib->adapters[0].channel, 0);
    a.send_cq = a.recv_cq = m->cq;
    m->qp = m->cq ? d->verbs.create_qp(d->pd, &a) : NULL;
    if (!m->qp || ib_qp_start_datagrams(d, m->qp, QKEY) != 0)
        return err_set(MPI_ERR_OTHER, "%s: cannot create the queue pair of a multicast group: %s", d->name,
                       err_reason(errno));
    for (uint32_t i = 0; i < m->receives; i++)
        repost_receive_buffer(m, i);
    return 0;
}

static void mcast_close(void *member)
{
    struct mcast_member *m = member;
    const struct verbs *v = &m->ib->device.verbs;
    list_remove(&m->link);
    if (m->qp) {
        ib_multicast_leave(&m->ib->device, m->qp, &m->group);
        v->destroy_qp(m->qp);
    }
    if (m->ah)
        v->destroy_ah(m->ah);
    if (m->cq)
        v->destroy_cq(m->cq);
    if (m->mr)
        v->dereg_mr(m->mr);
    if (m->memory)
        munmap(m->memory, m->size);
    free(m->on_way);
    free(m);
}

static int mcast_open(struct transport *t, uint64_t number, uint32_t receives, uint32_t slots, void **out)
{
    struct ib *ib = ib_of(t);
    const struct ib_device *d = &ib->device;
    const uint32_t most = (uint32_t)d->attr.max_qp_wr;
    struct ibv_ah_attr route;
    struct mcast_member *m = calloc(1, sizeof(*m));
    if (!m)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a multicast group");
    *m = (struct mcast_member){.ib = ib,
                               .receives = MIN(receives, most),
                               .slots = slots,
                               .sends_max = MIN(2 * slots, most),
                               .stride = ALIGN_UP(IB_GRH_BYTES + packet_max(t), CACHE_LINE)};
    m->group.membership = -1;
    list_init(&m->link);
    m->on_way = calloc(slots, sizeof(*m->on_way));
    int rc =
        m->on_way ? member_map_packets(m) : err_set(MPI_ERR_NO_MEM, "out of memory for a multicast group");
    rc = rc ? rc : member_create_queues(m);
    rc = rc ? rc : ib_multicast_join(d, m->qp, number, &m->group, &route);
    if (!rc && !(m->ah = d->verbs.create_ah(d->pd, &route)))
        rc = err_set(MPI_ERR_OTHER, "%s: cannot create an address handle for a multicast group: %s", d->name,
                     err_reason(errno));
    if (rc) {
        mcast_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

/* Starts to poll the group. An earlier packet, for which there is no receiver yet, would keep this process
 * awake, and keep other ranks from the processor. */
static void member_start_polling(void *member)
{
    struct mcast_member *m = member;
    list_append(&m->ib->multicasts, &m->link);
}

static int mcast_send(void *member, uint32_t i, size_t len)
{
    struct mcast_member *m = member;
    if (m->sends == m->sends_max)
        return ERR_AGAIN;
    struct ibv_sge piece = {
        .addr = (uintptr_t)packet_slot(m, i), .length = (uint32_t)len, .lkey = m->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = SENT | i,
                             .sg_list = &piece,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = m->ah, .remote_qpn = 0xffffff, .remote_qkey = QKEY}},
                       *bad;
    const int rc = ibv_post_send(m->qp, &wr, &bad);
    if (rc == ENOMEM)
        return ERR_AGAIN;
    if (rc != 0)
        ib_fatal(m->ib, NULL, "a multicast packet was refused (%s)", err_reason(rc));
    m->sends++;
    m->on_way[i]++;
    return 0;
}

/* Handles a completion. True if *out is a packet that has arrived. */
static bool member_take_packet(struct mcast_member *m, const struct ibv_wc *wc, struct net_packet *out)
{
    if (wc->status != IBV_WC_SUCCESS)
        ib_fatal(m->ib, NULL, "a multicast packet cannot be %s: %s (verbs status %d)",
                 wc->wr_id & SENT ? "sent" : "received", m->ib->device.verbs.wc_status_str(wc->status),
                 wc->status);
    if (wc->wr_id & SENT) {
        m->sends--;
        m->on_way[(uint32_t)wc->wr_id]--;
        return false;
    }
    *out = (struct net_packet){.data = receive_buffer(m, (uint32_t)wc->wr_id) + IB_GRH_BYTES,
                               .length = wc->byte_len - IB_GRH_BYTES,
                               .handle = (uint32_t)wc->wr_id};
    return true;
}

static int member_poll_cq(struct mcast_member *m, int most, struct ibv_wc *wc)
{
    const int found = ibv_poll_cq(m->cq, most, wc);
    if (found < 0)
        ib_fatal(m->ib, NULL, "cannot poll the completion queue of a multicast group");
    return found;
}

static int mcast_poll(void *member, struct net_packet *out, int most)
{
    struct mcast_member *m = member;
    int n = 0;
    while (m->stash_at < m->stashed && n < most)
        n += member_take_packet(m, &m->stash[m->stash_at++], &out[n]);
    struct ibv_wc wc[STASH];
    const int found = n < most ? member_poll_cq(m, MIN(most - n, STASH), wc) : 0;
    for (int i = 0; i < found; i++)
        n += member_take_packet(m, &wc[i], &out[n]);
    return n;
}

bool ib_multicast_arm(struct ib *ib)
{
    bool quiet = true;
    list_foreach(pos, &ib->multicasts)
    {
        struct mcast_member *m = list_entry(pos, struct mcast_member, link);
        if (m->stash_at < m->stashed || ibv_req_notify_cq(m->cq, 0) != 0)
            return false;
        m->stashed = member_poll_cq(m, STASH, m->stash);
        m->stash_at = 0;
        quiet = quiet && m->stashed == 0;
    }
    return quiet;
}

const struct transport_multicast ib_multicast = {.packet_max = packet_max,
                                                 .open = mcast_open,
                                                 .begin = member_start_polling,
                                                 .slot = packet_slot,
                                                 .busy = packet_is_busy,
                                                 .send = mcast_send,
                                                 .poll = mcast_poll,
                                                 .give_back = repost_receive_buffer,
                                                 .close = mcast_close};
