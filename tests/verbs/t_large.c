/* t_large.c: large messages of odd sizes at odd addresses, to a sleeping peer, to a polling peer and in
 * both directions at once, contiguous and gathered: every byte arrives, and no other byte changes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"

#define HALF   (BUF_BYTES / 2)
#define ROUNDS 12

static const uint32_t sizes[] = {65536,  65537,    100003,   131072,           262144 + 1,
                                 700001, 1u << 20, 3u << 20, (3u << 20) + 4095};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void fill_guards(struct vt *t, size_t at, uint32_t n)
{
    t->buf[at - 1] = t->buf[at + n] = 0xa5;
}

static void check_guarded(struct vt *t, size_t at, uint32_t n, const char *what)
{
    CHECK(t->buf[at - 1] == 0xa5 && t->buf[at + n] == 0xa5,
          "%s of %u bytes changed a byte outside its target", what, n);
}

/* Side 0 transfers; side 1 sleeps in recv() until side 0 has finished, then checks its memory. */
static void test_one_sided(struct vt *t, struct vt_qp *q)
{
    for (unsigned i = 0; i < SIZES * 2; i++) {
        uint32_t n = sizes[i % SIZES];
        size_t from = 1 + i * 61 % 4096, to = HALF + 1 + i * 1021 % 8192;
        enum ibv_wr_opcode op = i < SIZES ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
        bool source = (op == IBV_WR_RDMA_WRITE) == (t->side == 0);
        if (source)
            vt_fill(t->buf + from, n, i);
        else
            fill_guards(t, to, n);
        vt_sync(t);
        if (t->side == 0) {
            size_t mine = source ? from : to, theirs = source ? to : from;
            CHECK(!vt_post_request(q, t, op, i, mine, n, theirs, IBV_SEND_SIGNALED));
            CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).wr_id == i);
        }
        vt_sync(t);
        if (!source) {
            vt_expect_bytes(t->buf + to, n, i, op == IBV_WR_RDMA_WRITE ? "a large write" : "a large read");
            check_guarded(t, to, n, "a large transfer");
        }
    }
}

/* Both sides write to each other and poll while the other side's data arrives. */
static void test_both_directions(struct vt *t, struct vt_qp *q)
{
    for (unsigned r = 0; r < ROUNDS; r++) {
        uint32_t n = sizes[r % SIZES];
        vt_fill(t->buf + 7, n, r * 2 + (unsigned)t->side);
        vt_post_receive(q, t, 500, 0, 0);
        vt_sync(t);
        CHECK(!vt_post_request(q, t, IBV_WR_RDMA_WRITE_WITH_IMM, 600, 7, n, HALF + 3, IBV_SEND_SIGNALED));
        for (int i = 0; i < 2; i++) {
            struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
            if (wc.wr_id == 500)
                vt_expect_bytes(t->buf + HALF + 3, n, r * 2 + !t->side,
                                "a write during a write in the other direction");
        }
        vt_sync(t);
    }
}

/* A message that is gathered from three pieces and scattered to three others. */
static void test_gathered(struct vt *t, struct vt_qp *q)
{
    const uint32_t n = 900001, cut[2][2] = {{300, 500003}, {70001, 70002}};
    struct ibv_sge sge[3];
    const uint32_t *c = cut[t->side];
    uint32_t len[3] = {c[0], c[1] - c[0], n - c[1]}, off = 0;
    for (int i = 0; i < 3; i++) {
        sge[i] = (struct ibv_sge){(uintptr_t)t->buf + (t->side ? HALF : 0) + off + (unsigned)i * 4099, len[i],
                                  t->mr->lkey};
        off += len[i];
    }
    unsigned char *whole = malloc(n);
    CHECK(whole);
    vt_fill(whole, n, 77);
    if (t->side) {
        struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = 3}, *bad;
        CHECK(!ibv_post_recv(q->qp, &wr, &bad));
    }
    vt_sync(t);
    if (!t->side) {
        struct ibv_send_wr wr = {.wr_id = 1,
                                 .sg_list = sge,
                                 .num_sge = 3,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED},
                           *bad;
        off = 0;
        for (int i = 0; i < 3; off += len[i++])
            memcpy((void *)(uintptr_t)sge[i].addr, whole + off, len[i]);
        CHECK(!ibv_post_send(q->qp, &wr, &bad));
    }
    struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    if (t->side) {
        CHECK(wc.byte_len == n);
        off = 0;
        for (int i = 0; i < 3; off += len[i++])
            CHECK(!memcmp((void *)(uintptr_t)sge[i].addr, whole + off, len[i]),
                  "piece %d of a gathered message", i);
    }
    free(whole);
    vt_sync(t);
}

static void run_test(struct vt *t)
{
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    struct vt_qp q;
    o.timeout = 18;
    o.sge = 3;
    vt_qp_open(t, o, &q);
    test_one_sided(t, &q);
    test_both_directions(t, &q);
    test_gathered(t, &q);
    vt_qp_close(&q);
}

int main(void)
{
    return vt_run(run_test);
}
