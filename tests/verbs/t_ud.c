/* t_ud.c: unreliable datagrams: data after the global route header, source fields, wrong Q_Keys, losses
 * without receives, address handles created from a completion, multicast.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define GRH 40u

static void post_ud(struct vt *t, struct vt_qp *q, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
                    uint32_t len, uint64_t id, unsigned flags)
{
    struct ibv_sge s = {(uintptr_t)t->buf, len, t->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = id,
                             .sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND_WITH_IMM,
                             .send_flags = flags},
                       *bad;
    wr.imm_data = (uint32_t)id;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = qkey;
    CHECK(!ibv_post_send(q->qp, &wr, &bad));
}

static void send_ud_and_wait(struct vt *t, struct vt_qp *q, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
                             uint32_t len, uint64_t id)
{
    post_ud(t, q, ah, qpn, qkey, len, id, IBV_SEND_SIGNALED);
    CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).wr_id == id);
}

static void test_unicast(struct vt *t, struct vt_qp *q)
{
    struct ibv_ah *ah = vt_create_ah(t, &q->peer);
    for (unsigned n = 0; n <= 1024; n += 512) {
        if (t->side == 0) {
            vt_post_receive(q, t, n, 0, 2048);
            vt_sync(t);
            struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
            CHECK(wc.byte_len == n + GRH && wc.src_qp == q->peer.qpn && wc.imm_data == n + 1);
            CHECK(t->gid_index >= 0 || wc.slid == q->peer.lid, "slid %x", wc.slid);
            vt_expect_bytes(t->buf + GRH, n, n, "datagram");
            /* The answer is sent to the source that the completion names. */
            struct ibv_ah *back = ibv_create_ah_from_wc(t->pd, &wc, (struct ibv_grh *)t->buf, 1);
            CHECK(back);
            vt_fill(t->buf, 64, n + 1);
            send_ud_and_wait(t, q, back, wc.src_qp, 0x1111, 64, n + 2);
            CHECK(!ibv_destroy_ah(back));
        } else {
            vt_post_receive(q, t, n, 4096, 2048);
            vt_fill(t->buf, n, n);
            vt_sync(t);
            /* Unsignalled, since the answer may arrive before the completion of the request. */
            post_ud(t, q, ah, q->peer.qpn, 0x1111, n, n + 1, 0);
            CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).byte_len == 64 + GRH);
            vt_expect_bytes(t->buf + 4096 + GRH, 64, n + 1, "answer");
        }
        vt_sync(t);
    }
    CHECK(!ibv_destroy_ah(ah));
}

/* Datagrams with a wrong Q_Key, or without a receive, are dropped silently; all others arrive. */
static void test_drops(struct vt *t, struct vt_qp *q)
{
    struct ibv_ah *ah = vt_create_ah(t, &q->peer);
    if (t->side == 0) {
        vt_sync(t);
        vt_sync(t);
        CHECK(vt_has_no_completion(t->cq, 100), "a completion without a posted receive");
        vt_post_receive(q, t, 1, 0, 2048);
        vt_sync(t);
        CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).imm_data == 9);
        vt_sync(t);
    } else {
        vt_sync(t);
        for (unsigned i = 0; i < 5; i++)
            send_ud_and_wait(t, q, ah, q->peer.qpn, 0x1111, 100, i);
        vt_sync(t);
        vt_sync(t);
        send_ud_and_wait(t, q, ah, q->peer.qpn, 0x2222, 100, 8);
        send_ud_and_wait(t, q, ah, q->peer.qpn, 0x1111, 100, 9);
        vt_sync(t);
    }
    CHECK(!ibv_destroy_ah(ah));
}

/* On RoCE a multicast group is an IP group, and the network interface must join too. Returns the socket
 * that holds the membership. */
static int join_ip_group(const union ibv_gid *mine, const union ibv_gid *group)
{
    struct ip_mreqn m = {0};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    memcpy(&m.imr_multiaddr, group->raw + 12, 4);
    memcpy(&m.imr_address, mine->raw + 12, 4);
    CHECK(s >= 0);
    /* softib's simulated interface does not exist in the system. */
    CHECK(!setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)) || errno == ENODEV);
    return s;
}

static void test_multicast(struct vt *t, struct vt_qp *q)
{
    static const union ibv_gid ib = {.raw = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 1, 2, 3, 4}};
    static const union ibv_gid ip = {.raw = {[10] = 0xff, 0xff, 239, 2, 3, 4}};
    union ibv_gid group = t->gid_index >= 0 ? ip : ib;
    struct ibv_ah_attr a = {.dlid = 0xc001, .port_num = 1, .is_global = 1};
    int member = -1;
    a.grh.dgid = group;
    a.grh.hop_limit = 1;
    if (t->gid_index >= 0) {
        if (memcmp(t->gid.raw, ip.raw, 12))
            return; /* the GID is not an IPv4 address: no interface can join */
        member = join_ip_group(&t->gid, &group);
        a.grh.sgid_index = (uint8_t)t->gid_index;
    }
    CHECK(!ibv_attach_mcast(q->qp, &group, 0xc001));
    vt_post_receive(q, t, 5, 8192, 2048);
    vt_sync(t);
    struct ibv_ah *ah = ibv_create_ah(t->pd, &a);
    CHECK(ah);
    if (t->side == 1) {
        vt_fill(t->buf, 333, 8);
        post_ud(t, q, ah, 0xffffff, 0x1111, 333, 5, 0);
    }
    /* The sender's QP is a member of the group too. */
    struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    CHECK(wc.byte_len == 333 + GRH && wc.wc_flags & IBV_WC_GRH);
    CHECK(wc.src_qp == (t->side ? q->me.qpn : q->peer.qpn));
    vt_expect_bytes(t->buf + 8192 + GRH, 333, 8, "multicast");
    /* RoCE over IPv4 stores its IP header in the last 20 bytes of the route header's space. */
    unsigned known = member >= 0 ? 12 : 0;
    CHECK(!memcmp(((struct ibv_grh *)(t->buf + 8192))->dgid.raw + known, group.raw + known, 16 - known));
    CHECK(ibv_destroy_qp(q->qp) == EBUSY, "destroyed a queue pair that is a member of a group");
    vt_sync(t);
    CHECK(!ibv_detach_mcast(q->qp, &group, 0xc001));
    vt_post_receive(q, t, 6, 8192, 2048);
    vt_sync(t);
    if (t->side == 1)
        send_ud_and_wait(t, q, ah, 0xffffff, 0x1111, 333, 6);
    vt_sync(t);
    CHECK(vt_has_no_completion(t->cq, 50), "a packet arrived after the queue pair left the group");
    CHECK(!ibv_destroy_ah(ah));
    if (member >= 0)
        close(member);
}

static void run_test(struct vt *t)
{
    struct vt_qp q;
    vt_qp_open(t, vt_defaults(IBV_QPT_UD), &q);
    test_unicast(t, &q);
    test_drops(t, &q);
    test_multicast(t, &q);
    vt_qp_close(&q);
}

int main(void)
{
    return vt_run(run_test);
}
