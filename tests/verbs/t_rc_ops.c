/* t_rc_ops.c: every operation of a reliable connection: data, completion fields, gather and scatter, inline,
 * fences, unsignalled sends, a full send queue.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>

#define REMOTE_OFFSET (4u << 20)

static void test_sends(struct vt *t, struct vt_qp *q)
{
    static const uint32_t sizes[] = {0,    1,     2,      7,      64,       1023,   1024,
                                     4097, 65536, 262144, 262145, 1u << 20, 3333333};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint32_t n = sizes[i];
        if (t->side == 0) {
            memset(t->buf, 0xee, n + 1);
            vt_post_receive(q, t, i, 0, n);
            vt_sync(t);
            struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
            CHECK(wc.opcode == IBV_WC_RECV && wc.wr_id == i && wc.byte_len == n &&
                  wc.qp_num == q->qp->qp_num);
            CHECK(!!(wc.wc_flags & IBV_WC_WITH_IMM) == (i & 1));
            CHECK(!(i & 1) || wc.imm_data == 0x12345678, "%x", wc.imm_data);
            vt_expect_bytes(t->buf, n, i, "send");
            CHECK(t->buf[n] == 0xee, "wrote past the end");
        } else {
            vt_fill(t->buf, n, i);
            vt_sync(t);
            CHECK(!vt_post_request(q, t, i & 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, 100 + i, 0, n, 0,
                                   IBV_SEND_SIGNALED));
            struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
            CHECK(wc.opcode == IBV_WC_SEND && wc.wr_id == 100 + i);
        }
        vt_sync(t);
    }
}

static void test_rdma(struct vt *t, struct vt_qp *q)
{
    static const uint32_t sizes[] = {1, 8, 100, 4096, 70001, 300000, 2000000};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint32_t n = sizes[i];
        if (t->side == 1) {
            vt_fill(t->buf, n, i);
            vt_sync(t);
            CHECK(!vt_post_request(q, t, IBV_WR_RDMA_WRITE, 1, 0, n, REMOTE_OFFSET + 3, IBV_SEND_SIGNALED));
            CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).opcode == IBV_WC_RDMA_WRITE);
            memset(t->buf, 0, n);
            CHECK(!vt_post_request(q, t, IBV_WR_RDMA_READ, 2, 0, n, REMOTE_OFFSET + 3, IBV_SEND_SIGNALED));
            struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
            CHECK(wc.opcode == IBV_WC_RDMA_READ && wc.byte_len == n);
            vt_expect_bytes(t->buf, n, i, "read");
            CHECK(!vt_post_request(q, t, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 0, n, REMOTE_OFFSET + 3,
                                   IBV_SEND_SIGNALED));
            vt_expect_completion(t->cq, IBV_WC_SUCCESS);
            vt_sync(t);
        } else {
            memset(t->buf + REMOTE_OFFSET, 0, n + 8);
            vt_post_receive(q, t, 7, 0, 0);
            vt_sync(t);
            struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
            CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == n && wc.imm_data == 0x12345678);
            vt_expect_bytes(t->buf + REMOTE_OFFSET + 3, n, i, "write");
            CHECK(!t->buf[REMOTE_OFFSET + 2] && !t->buf[REMOTE_OFFSET + 3 + n], "wrote outside");
            vt_sync(t);
        }
    }
}

static uint64_t execute_atomic(struct vt *t, struct vt_qp *q, enum ibv_wr_opcode op, uint64_t a, uint64_t b)
{
    struct ibv_sge s = {(uintptr_t)t->buf, 8, t->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.atomic.remote_addr = q->peer.buf + REMOTE_OFFSET;
    wr.wr.atomic.rkey = q->peer.rkey;
    wr.wr.atomic.compare_add = a;
    wr.wr.atomic.swap = b;
    CHECK(!ibv_post_send(q->qp, &wr, &bad));
    struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    CHECK(wc.opcode == (op == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD));
    uint64_t old;
    memcpy(&old, t->buf, 8);
    return old;
}

static void test_atomics(struct vt *t, struct vt_qp *q)
{
    uint64_t *word = (uint64_t *)(t->buf + REMOTE_OFFSET);
    *word = 40;
    vt_sync(t);
    if (t->side == 1) {
        CHECK(execute_atomic(t, q, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0) == 40);
        CHECK(execute_atomic(t, q, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 99) == 42);
        CHECK(execute_atomic(t, q, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 7) == 42);
        CHECK(execute_atomic(t, q, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0) == 7);
        vt_sync(t);
    } else {
        vt_sync(t);
        CHECK(*word == 7, "%llu", (unsigned long long)*word);
    }
    /* Both sides add to one word of side 0 at once: no addition may get lost. */
    vt_sync(t);
    struct vt_qp *mine = q;
    for (int i = 0; i < 200 && t->side == 1; i++)
        execute_atomic(t, mine, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0);
    vt_sync(t);
    if (t->side == 0)
        CHECK(*word == 207, "%llu", (unsigned long long)*word);
}

static void test_lists(struct vt *t, struct vt_qp *q)
{
    if (t->side == 0) {
        struct ibv_sge s[3] = {{(uintptr_t)t->buf + 5000, 10, t->mr->lkey},
                               {(uintptr_t)t->buf + 1, 0, t->mr->lkey},
                               {(uintptr_t)t->buf, 300, t->mr->lkey}};
        struct ibv_recv_wr wr = {.sg_list = s, .num_sge = 3}, *bad;
        CHECK(!ibv_post_recv(q->qp, &wr, &bad));
        vt_post_receive(q, t, 2, 6000, 64);
        vt_sync(t);
        CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).byte_len == 150);
        unsigned char all[150];
        memcpy(all, t->buf + 5000, 10);
        memcpy(all + 10, t->buf, 140);
        vt_expect_bytes(all, 150, 9, "gathered and scattered");
        CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).byte_len == 40);
        vt_expect_bytes(t->buf + 6000, 40, 3, "inline");
        vt_sync(t);
        return;
    }
    vt_fill(t->buf, 150, 9);
    struct ibv_sge s[3] = {{(uintptr_t)t->buf, 33, t->mr->lkey},
                           {(uintptr_t)t->buf + 33, 0, t->mr->lkey},
                           {(uintptr_t)t->buf + 33, 117, t->mr->lkey}};
    unsigned char small[40];
    vt_fill(small, 40, 3);
    struct ibv_sge in = {(uintptr_t)small, 40, 0xdead}; /* inline data needs no key */
    struct ibv_send_wr second = {.wr_id = 2,
                                 .sg_list = &in,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_FENCE};
    struct ibv_send_wr first = {.wr_id = 1,
                                .next = &second,
                                .sg_list = s,
                                .num_sge = 3,
                                .opcode = IBV_WR_SEND},
                       *bad;
    vt_sync(t);
    CHECK(!ibv_post_send(q->qp, &first, &bad));
    memset(small, 0, 40); /* inline data may be changed after the post */
    CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).wr_id == 2, "a completion of the unsignalled request");
    vt_sync(t);
}

static void test_full_queue(struct vt *t, struct vt_qp *q)
{
    if (t->side == 1) {
        int n = 0, r, limit = t->rxe ? 1000 : 100000;
        while (!(r = vt_post_request(q, t, IBV_WR_RDMA_WRITE, 5, 0, 8, REMOTE_OFFSET, 0)) && n < limit)
            n++;
        /* rxe frees entries of unsignalled requests itself: the queue fills only if posting is faster. */
        CHECK(t->rxe || r, "a queue of unsignalled requests was never full");
        CHECK(n >= 128 && (!r || r == ENOMEM), "ibv_post_send returned %d after %d requests", r, n);
    }
    vt_sync(t);
}

static void run_test(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    vt_qp_open(t, o, &q);
    test_sends(t, &q);
    test_rdma(t, &q);
    test_atomics(t, &q);
    test_lists(t, &q);
    test_full_queue(t, &q);
    vt_qp_close(&q);
}

int main(void)
{
    return vt_run(run_test);
}
