/* t_post_ex.c: the newer way to post (ibv_wr_*): every operation of a reliable connection, one and several in a list, data
 * inline, gathered from pieces, and a list that is given up.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <arpa/inet.h>
#include <errno.h>

#define OPS                                                                                              \
    (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |                    \
     IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

enum { FROM = 0, WORD = 4096, BACK = 8192, INTO = 16384 }; /* places in the buffer */

static struct ibv_qp_ex *post_ex_next(struct ibv_qp_ex *x, uint64_t id)
{
    x->wr_id = id;
    x->wr_flags = IBV_SEND_SIGNALED;
    return x;
}

static void test_data(struct ibv_qp_ex *x, struct vt *t, size_t off, uint32_t len)
{
    ibv_wr_set_sge(x, t->mr->lkey, (uintptr_t)t->buf + off, len);
}

static void post_ex_finish(struct ibv_qp_ex *x, struct vt *t, uint64_t first, unsigned count)
{
    int rc = ibv_wr_complete(x);
    CHECK(!rc, "ibv_wr_complete: %s", strerror(rc));
    for (unsigned i = 0; i < count; i++) {
        struct ibv_wc wc = vt_wc(t->cq, IBV_WC_SUCCESS);
        CHECK(wc.wr_id == first + i, "completion of request %lu", (unsigned long)wc.wr_id);
    }
}

/* Writes, reads and atomics, five requests in one list. */
static void one_sided(struct vt *t, struct vt_qp *q, struct ibv_qp_ex *x)
{
    const uint64_t word = q->peer.buf + WORD;
    ibv_wr_start(x);
    ibv_wr_rdma_write(post_ex_next(x, 10), q->peer.rkey, q->peer.buf + INTO);
    test_data(x, t, FROM, 300);
    ibv_wr_rdma_write_imm(post_ex_next(x, 11), q->peer.rkey, q->peer.buf + INTO + 300, htonl(77));
    test_data(x, t, FROM + 300, 200);
    ibv_wr_rdma_read(post_ex_next(x, 12), q->peer.rkey, q->peer.buf + INTO);
    test_data(x, t, BACK, 500);
    ibv_wr_atomic_fetch_add(post_ex_next(x, 13), q->peer.rkey, word, 5);
    test_data(x, t, WORD + 8, 8);
    ibv_wr_atomic_cmp_swp(post_ex_next(x, 14), q->peer.rkey, word, 105, 42);
    test_data(x, t, WORD + 16, 8);
    post_ex_finish(x, t, 10, 5);
    vt_expect(t->buf + BACK, 500, 3, "what was written, read back");
    uint64_t found[2];
    memcpy(found, t->buf + WORD + 8, sizeof(found));
    CHECK(found[0] == 100 && found[1] == 105, "atomics found %lu and %lu", (unsigned long)found[0],
          (unsigned long)found[1]);
}

/* Sends: plain, with a word, inline, gathered from two pieces. */
static void two_sided(struct vt *t, struct ibv_qp_ex *x)
{
    const struct ibv_sge pieces[2] = {{(uintptr_t)t->buf + FROM, 100, t->mr->lkey},
                                      {(uintptr_t)t->buf + FROM + 100, 60, t->mr->lkey}};
    const struct ibv_data_buf parts[2] = {{t->buf + FROM, 10}, {t->buf + FROM + 10, 20}};
    ibv_wr_start(x);
    ibv_wr_send(post_ex_next(x, 20));
    test_data(x, t, FROM, 160);
    ibv_wr_send_imm(post_ex_next(x, 21), htonl(99));
    ibv_wr_set_sge_list(x, 2, pieces);
    ibv_wr_send(post_ex_next(x, 22));
    ibv_wr_set_inline_data(x, t->buf + FROM, 30);
    ibv_wr_send(post_ex_next(x, 23));
    ibv_wr_set_inline_data_list(x, 2, parts);
    post_ex_finish(x, t, 20, 4);
    /* What is given up is as if it had never been. */
    ibv_wr_start(x);
    ibv_wr_send(post_ex_next(x, 30));
    test_data(x, t, FROM, 8);
    ibv_wr_abort(x);
    CHECK(vt_quiet(t->cq, 50), "a list that was given up sends nothing");
}

static void post_ex_receive(struct vt *t, struct vt_qp *q)
{
    struct ibv_wc wc = vt_wc(t->cq, IBV_WC_SUCCESS);
    CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && ntohl(wc.imm_data) == 77 && wc.byte_len == 200);
    static const uint32_t sizes[4] = {160, 160, 30, 30};
    for (uint64_t i = 1; i <= 4; i++) {
        wc = vt_wc(t->cq, IBV_WC_SUCCESS);
        CHECK(wc.wr_id == i && wc.byte_len == sizes[i - 1], "receive %lu of %u bytes",
              (unsigned long)wc.wr_id, wc.byte_len);
        CHECK(!!(wc.wc_flags & IBV_WC_WITH_IMM) == (i == 2) && (i != 2 || ntohl(wc.imm_data) == 99));
        vt_expect(t->buf + BACK + 1024 * i, wc.byte_len, 3, "received");
    }
    vt_sync(t); /* the other side has its answers */
    uint64_t word;
    memcpy(&word, t->buf + WORD, sizeof(word));
    CHECK(word == 42, "the word is %lu", (unsigned long)word);
    vt_expect(t->buf + INTO, 500, 3, "written");
    (void)q;
}

static void post_ex_run_test(struct vt *t)
{
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    struct vt_qp q;
    const uint64_t start = 100;
    o.send_ops = OPS;
    o.sge = 2;
    vt_qp_make(t, o, &q);
    struct ibv_qp_ex *x = ibv_qp_to_qp_ex(q.qp);
    CHECK(x, "a queue pair for ibv_wr_*");
    memset(t->buf, 0, INTO + 1024);
    if (t->side == 0)
        vt_fill(t->buf + FROM, 500, 3);
    else
        memcpy(t->buf + WORD, &start, sizeof(start));
    for (uint64_t i = 0; t->side == 1 && i <= 4; i++)
        vt_recv(&q, t, i, BACK + 1024 * i, 1024);
    vt_sync(t);
    if (t->side == 0) {
        one_sided(t, &q, x);
        two_sided(t, x);
        vt_sync(t);
    } else {
        post_ex_receive(t, &q);
    }
    vt_qp_end(&q);
}

int main(void)
{
    return vt_run(post_ex_run_test);
}
