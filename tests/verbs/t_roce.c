/* t_roce.c: RoCE ports: a port has no LID, paths use GIDs, both ends must use the same RoCE version, and a
 * datagram can be answered with the data of its completion and its header.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <arpa/inet.h>
#include <errno.h>

#define GRH_BYTES 40

static struct ibv_ah_attr make_address(const union ibv_gid *to, uint8_t index)
{
    struct ibv_ah_attr a = {.port_num = 1, .is_global = 1};
    a.grh.dgid = *to;
    a.grh.sgid_index = index;
    a.grh.hop_limit = 64;
    return a;
}

static void test_port(struct vt *t)
{
    struct ibv_gid_entry e;
    CHECK(t->port.lid == 0 && t->port.sm_lid == 0, "the port has LID %u, expected 0", t->port.lid);
    CHECK(t->port.flags & IBV_QPF_GRH_REQUIRED && t->port.gid_tbl_len >= 2);
    for (int i = 0; i < t->port.gid_tbl_len; i++) {
        if (ibv_query_gid_ex(t->ctx, 1, (uint32_t)i, &e, 0) == ENODATA)
            continue;
        CHECK(e.gid_type == IBV_GID_TYPE_ROCE_V1 || e.gid_type == IBV_GID_TYPE_ROCE_V2, "entry %d", i);
    }
}

/* Address handles and queue pairs require an existing destination GID and a valid own GID index. */
static void test_addresses(struct vt *t, const struct vt_addr *peer)
{
    struct ibv_ah_attr a = make_address(&peer->gid, (uint8_t)t->gid_index);
    struct ibv_ah *h = ibv_create_ah(t->pd, &a);
    CHECK(h && !ibv_destroy_ah(h));
    a.is_global = 0;
    a.dlid = 1;
    CHECK(!ibv_create_ah(t->pd, &a) && errno == EINVAL, "created an address handle from a LID");
    a = make_address(&peer->gid, (uint8_t)t->gid_index);
    a.grh.sgid_index = 255;
    CHECK(!ibv_create_ah(t->pd, &a), "created an address handle with GID index 255");
    memset(a.grh.dgid.raw, 0x77, 16);
    a.grh.sgid_index = (uint8_t)t->gid_index;
    CHECK(!ibv_create_ah(t->pd, &a), "created an address handle to a GID of no port");
}

/* Side 0 sends a datagram; side 1 answers with the data of the arrived datagram only. */
static void test_answered_datagram(struct vt *t)
{
    struct vt_qp q;
    vt_qp_open(t, vt_defaults(IBV_QPT_UD), &q);
    test_addresses(t, &q.peer);
    vt_post_receive(&q, t, 1, 0, 256);
    vt_sync(t);
    struct ibv_sge s = {(uintptr_t)t->buf + 4096, 64, t->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    struct ibv_ah *h;
    vt_fill(t->buf + 4096, 64, 7u + (unsigned)t->side);
    if (t->side == 0) {
        h = vt_create_ah(t, &q.peer);
        wr.wr.ud.remote_qpn = q.peer.qpn;
    } else {
        struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        CHECK(wc.slid == 0 && wc.wc_flags & IBV_WC_GRH && wc.byte_len == 64 + GRH_BYTES);
        vt_expect_bytes(t->buf + GRH_BYTES, 64, 7, "the question");
        struct ibv_ah_attr a;
        CHECK(!ibv_init_ah_from_wc(t->ctx, 1, &wc, (struct ibv_grh *)(void *)t->buf, &a));
        CHECK(a.is_global && a.grh.sgid_index == t->gid_index, "entry %u", a.grh.sgid_index);
        CHECK(!memcmp(&a.grh.dgid, &q.peer.gid, sizeof(a.grh.dgid)));
        h = ibv_create_ah_from_wc(t->pd, &wc, (struct ibv_grh *)(void *)t->buf, 1);
        wr.wr.ud.remote_qpn = wc.src_qp;
    }
    CHECK(h);
    wr.wr.ud.ah = h;
    wr.wr.ud.remote_qkey = 0x1111;
    CHECK(!ibv_post_send(q.qp, &wr, &bad));
    vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    if (t->side == 0) {
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        vt_expect_bytes(t->buf + GRH_BYTES, 64, 8, "the answer");
    }
    vt_sync(t);
    CHECK(!ibv_destroy_ah(h));
    vt_qp_close(&q);
}

/* Returns the GID table entry with the same GID and the other version, or -1. */
static int find_other_version(struct vt *t)
{
    struct ibv_gid_entry mine, e;
    CHECK(!ibv_query_gid_ex(t->ctx, 1, (uint32_t)t->gid_index, &mine, 0));
    for (uint32_t i = 0; (int)i < t->port.gid_tbl_len; i++)
        if (!ibv_query_gid_ex(t->ctx, 1, i, &e, 0) && e.gid_type != mine.gid_type &&
            !memcmp(&e.gid, &mine.gid, sizeof(e.gid)))
            return (int)i;
    return -1;
}

/* Versions 1 and 2 use different packets: a queue pair accepts one version only. */
static void test_versions(struct vt *t)
{
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    struct vt_qp q;
    const int used = t->gid_index, other = find_other_version(t);
    o.timeout = 10;
    o.retry = 1;
    vt_qp_create(t, o, &q);
    if (t->side == 1 && other >= 0)
        t->gid_index = other;
    vt_qp_connect(t, o, &q);
    t->gid_index = used;
    if (t->side == 0 && other >= 0) {
        CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_RETRY_EXC_ERR);
    }
    vt_sync(t);
    vt_qp_close(&q);
}

/* The interface of a VLAN has its own GIDs, which reach only ports in the same VLAN. */
static void test_vlan(struct vt *t)
{
    const int last = t->port.gid_tbl_len - 1;
    union ibv_gid mine, theirs;
    uint8_t mac[6];
    uint16_t vid = 0;
    CHECK(!ibv_query_gid(t->ctx, 1, last, &mine));
    vt_exchange(t, &mine, &theirs, sizeof(mine));
    struct ibv_ah_attr a = make_address(&theirs, (uint8_t)last);
    int r = ibv_resolve_eth_l2_from_gid(t->ctx, &a, mac, &vid);
    if (!getenv("VERBS_VLAN"))
        return;
    CHECK(!r && vid == atoi(getenv("VERBS_VLAN")) && mac[0] == 2, "VLAN %u", vid);
    struct ibv_ah *h = ibv_create_ah(t->pd, &a);
    CHECK(h && !ibv_destroy_ah(h));
    a.grh.sgid_index = 1;
    CHECK(!ibv_create_ah(t->pd, &a) && errno == EHOSTUNREACH, "created an address handle to another VLAN");
}

static void run_test(struct vt *t)
{
    if (t->port.link_layer != IBV_LINK_LAYER_ETHERNET)
        vt_skip("no RoCE port");
    test_port(t);
    test_answered_datagram(t);
    test_versions(t);
    test_vlan(t);
}

int main(void)
{
    return vt_run(run_test);
}
